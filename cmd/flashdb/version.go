package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

// version returns the version this program was built from: that of the module, or the commit of a
// checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-dirty"
			}
		}
	}
	if commit == "" {
		return "devel"
	}
	return commit + dirty
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Example: `  flashdb version
  flashdb version --json`,
		Args: usage.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.emit(struct {
					Version string `json:"version"`
					Go      string `json:"go"`
					System  string `json:"system"`
				}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintln(a.out, versionLine())
			return err
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("flashdb %s, %s, %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
