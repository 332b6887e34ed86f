package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
)

// remoteProgram is a program of a module of its own, because it links the clients of the engines.
const remoteProgram = "flashdb-remote"

func (a *app) remoteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remote COMMAND ...",
		Short: "Predict over OpenSearch or PostgreSQL with flashdb-remote",
		Long: `Remote runs flashdb-remote with the same arguments. That program copies collections into an
engine on other machines, OpenSearch or PostgreSQL with pgvector, and predicts over it. It is
installed on its own, from a checkout:

  cd remote && go install ./cmd/flashdb-remote

docs/remote.md describes it.`,
		Example: `  flashdb remote push --engine http://host:9200 papers.flash papers.remote papers
  flashdb remote predict --engine http://host:9200 papers.remote papers 1706.03762 -k 10`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := exec.LookPath(remoteProgram)
			if errors.Is(err, exec.ErrNotFound) {
				if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
					return cmd.Help()
				}
				return fmt.Errorf("%s is not installed: run `cd remote && go install ./cmd/%s` in a checkout of flashdb, and see that its folder is in PATH", remoteProgram, remoteProgram)
			}
			if err != nil {
				return err
			}
			if a.json {
				args = append([]string{"--json"}, args...)
			}
			child := exec.CommandContext(cmd.Context(), program, args...)
			child.Stdin, child.Stdout, child.Stderr = a.in, a.out, a.err
			child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
			child.WaitDelay = graceTime
			err = child.Run()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				return &codedError{code: max(exitFailed, exit.ExitCode()), err: err, said: true}
			}
			return err
		},
	}
}
