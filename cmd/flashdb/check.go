package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "check DIR",
		SuggestFor: []string{"verify", "fsck", "validate"},
		Short:      "Read every file of a database and report what is wrong",
		Long: `Check reads every file of a database, verifies checksums and that the parts agree,
and prints one line for each finding. Files in the directory that flashdb did not make are only
warnings. Exit code: 0 no finding, warnings or not; 1 something is wrong.`,
		Example: `  flashdb check papers.flash`,
		Args:    usage.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var findings, strays []string
			err := a.withDB(cmd.Context(), args[0], flashdb.Options{ReadOnly: true}, func(db database) (err error) {
				if findings, err = db.Check(cmd.Context()); err == nil {
					strays, err = db.Strays(cmd.Context())
				}
				return err
			})
			switch {
			case errors.Is(err, flashdb.ErrCorrupt): // so damaged that it does not open
				findings = append(findings, err.Error())
			case err != nil:
				return err
			}
			if err := a.printFindings(args[0], findings, strays); err != nil {
				return err
			}
			if len(findings) > 0 {
				return fmt.Errorf("check %s: %s", args[0], show.Count(len(findings), "finding"))
			}
			return nil
		},
	}
}

func (a *app) printFindings(dir string, findings, strays []string) error {
	if a.json {
		return a.emit(struct {
			OK       bool     `json:"ok"`
			Findings []string `json:"findings"`
			Warnings []string `json:"warnings"`
		}{len(findings) == 0, show.JSONs(findings), show.JSONs(strays)})
	}
	for _, s := range strays {
		fmt.Fprintf(a.out, "warning: %s\n", show.Text(s))
	}
	for _, f := range findings {
		fmt.Fprintln(a.out, f)
	}
	if len(findings) == 0 {
		_, err := fmt.Fprintf(a.out, "%s: clean\n", show.Text(dir))
		return err
	}
	return nil
}
