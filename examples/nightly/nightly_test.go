// Package nightly_test runs the commands of the example files, so that they stay commands that
// flashdb takes.
package nightly_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"
)

// bin is where build puts the command.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "flashdb-nightly"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

// build returns the path of the command, which is built once.
func build(t *testing.T) string {
	t.Helper()
	command := filepath.Join(bin, "flashdb")
	if runtime.GOOS == "windows" {
		command += ".exe"
	}
	if _, err := os.Stat(command); err != nil {
		out, err := exec.Command("go", "build", "-o", command, "github.com/flashdb/flashdb/cmd/flashdb").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return command
}

// commandLines returns the arguments of flashdb in each file.
func commandLines(t *testing.T) map[string][]string {
	lines := map[string][]string{}
	for file, prefix := range map[string]*regexp.Regexp{
		"flashdb.cron":            regexp.MustCompile(`(?m)^[0-9*/, ]+\s+flashdb\s+.*/usr/local/bin/flashdb (.*)$`),
		"flashdb-rebuild.service": regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/flashdb (.*)$`),
	} {
		found := prefix.FindAllStringSubmatch(read(t, file), -1)
		require.Len(t, found, 1, file)
		assert.NotContains(t, found[0][1], "%", "%s: cron and systemd read a percent sign otherwise", file)
		lines[file] = strings.Fields(found[0][1])
	}
	container := cronJob(t, "cronjob.yaml").Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	require.Equal(t, "flashdb", container.Command[0])
	lines["cronjob.yaml"] = container.Command[1:]
	return lines
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// A manifest is what this test looks at of a CronJob.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Spec       struct {
		Schedule    string
		JobTemplate struct {
			Spec struct {
				PodFailurePolicy struct {
					Rules []struct {
						OnExitCodes struct {
							ContainerName string `yaml:"containerName"`
							Values        []int
						} `yaml:"onExitCodes"`
					}
				} `yaml:"podFailurePolicy"`
				Template struct {
					Spec struct {
						RestartPolicy string `yaml:"restartPolicy"`
						Containers    []struct {
							Name         string
							Command      []string
							VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
						}
						Volumes []struct{ Name string }
					}
				}
			}
		} `yaml:"jobTemplate"`
	}
}

func cronJob(t *testing.T, file string) (m manifest) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &m))
	return m
}

func TestCronJob(t *testing.T) {
	for _, file := range []string{"cronjob.yaml", "release-cronjob.yaml"} {
		m := cronJob(t, file)
		assert.Equal(t, "batch/v1", m.APIVersion, file)
		assert.Equal(t, "CronJob", m.Kind, file)
		assert.Len(t, strings.Fields(m.Spec.Schedule), 5, file)
		job := m.Spec.JobTemplate.Spec
		pod := job.Template.Spec
		require.Len(t, pod.Containers, 1, file)
		assert.Equal(t, "Never", pod.RestartPolicy, "%s: which podFailurePolicy demands", file)
		assert.Equal(t, pod.Containers[0].Name, job.PodFailurePolicy.Rules[0].OnExitCodes.ContainerName, file)
		assert.Equal(t, []int{2, 3}, job.PodFailurePolicy.Rules[0].OnExitCodes.Values, file)
		require.Len(t, pod.Containers[0].VolumeMounts, len(pod.Volumes), file)
		for i, volume := range pod.Volumes {
			assert.Equal(t, volume.Name, pod.Containers[0].VolumeMounts[i].Name, file)
		}
	}
}

func TestUnitsAreValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here: the units are not verified")
	}
	dir := t.TempDir()
	for _, name := range []string{"flashdb-rebuild.service", "flashdb-rebuild.timer", "flashdb-release.service", "flashdb-release.timer"} {
		// The command and the user of the example are not on this machine.
		text := strings.NewReplacer("/usr/local/bin/flashdb", "/bin/true", "/usr/local/bin/publish-night.sh", "/bin/true").Replace(read(t, name))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(dir, name)).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.NotContains(t, string(out), name, "a complaint")
	}
	for _, name := range []string{"flashdb-rebuild.timer", "flashdb-release.timer"} {
		when := regexp.MustCompile(`(?m)^OnCalendar=(.*)$`).FindStringSubmatch(read(t, name))
		require.NotNil(t, when)
		out, err := exec.Command(analyze, "calendar", when[1]).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// TestCommandsRun runs each command line on a database in the place of the one it names.
func TestCommandsRun(t *testing.T) {
	command := build(t)
	db := filepath.Join(t.TempDir(), "papers.flash")
	out, err := exec.Command(command, "create", db, "papers", "--dim", "2").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for file, args := range commandLines(t) {
		t.Run(file, func(t *testing.T) {
			require.Equal(t, "rebuild", args[0])
			require.True(t, strings.HasSuffix(args[1], "/papers.flash"), args[1])
			args := append([]string{"rebuild", db}, args[2:]...)
			out, err := exec.Command(command, args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "papers: nothing to do")
		})
	}
}
