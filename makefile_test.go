//go:build !race

package motorpool_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"motorpool/internal/require"
)

// A Go that cannot read go.mod names a line of it; the Makefile says what to install instead.
func TestMakefile_NamesTheGoThatIsMissing(t *testing.T) {
	module, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	needed, err := strconv.Atoi(string(regexp.MustCompile(`(?m)^go 1\.(\d+)`).FindSubmatch(module)[1]))
	require.NoError(t, err)
	for _, c := range []struct {
		version  string
		switches bool // to the version of go.mod, which it downloads
		wants    string
	}{
		{version: "", wants: "needed: "},
		{version: "go1.19.8", wants: "this is go1.19.8: "},
		{version: fmt.Sprintf("go1.%d.1", needed-1), wants: "this is go1."},
		{version: fmt.Sprintf("go1.%d.1", needed-1), switches: true},
		{version: fmt.Sprintf("go1.%d.0", needed), switches: true},
		{version: "go1.100.0", switches: true},
		{version: "go2.0", switches: true},
	} {
		dir := t.TempDir()
		script := "#!/bin/sh\n[ -n '" + c.version + "' ] || exit 127\n[ \"$1\" = env ] && echo " + c.version + "\n"
		if !c.switches {
			script += "[ \"$1\" = env ] || { echo \"go: errors parsing go.mod: invalid go version\" >&2; exit 1; }\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script+"exit 0\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		run := exec.Command("make", "--no-print-directory", "go")
		// Those of the make that runs the tests are not for this one.
		run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "MAKEFLAGS=")
		out, err := run.CombinedOutput()
		said := string(out)
		if failed := err != nil; failed != (c.wants != "") ||
			c.wants != "" &&
				(!strings.Contains(said, fmt.Sprintf("Go 1.%d or newer is needed", needed)) || !strings.Contains(said, c.wants) ||
					!strings.Contains(said, "https://go.dev/dl/ (README.md: without root, too)")) ||
			c.wants == "" && said != "" {
			t.Errorf("%+v: make prints %q, %v", c, said, err)
		}
	}
}

// Each target that compiles checks the version first.
func TestMakefile_ChecksGoBeforeItIsUsed(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	for _, rule := range regexp.MustCompile(`(?m)^(\w+):(.*)\n((?:\t.*\n)+)`).FindAllStringSubmatch(string(text), -1) {
		uses := regexp.MustCompile(`(?m)^\t@?(go |\$\(GOLANGCI\)|gofmt|\.ci/(contract/run|vuln|test))`).MatchString(rule[3])
		needs, _, _ := strings.Cut(rule[2], "##")
		if rule[1] != "go" && uses && !strings.Contains(" "+needs+" ", " go ") {
			t.Errorf("make %s uses go without checking its version", rule[1])
		}
	}
}

// Who cannot install servers learns that the tests run nevertheless.
func TestServers_SaysThatTheTestsGoOnWithoutThem(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sh", "dirname", "id"} { // and no apt-get
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	run := exec.Command("sh", ".ci/servers")
	run.Env = []string{"PATH=" + dir}
	out, err := run.CombinedOutput()
	if said := string(out); err != nil || !strings.Contains(said, "not installed: ") || !strings.Contains(said, "\ngoing on without: ") {
		t.Errorf("it prints %q, %v", said, err)
	}
	run = exec.Command("sh", ".ci/servers", "postgres") // as make dev does
	run.Env = []string{"PATH=" + dir}
	if out, err := run.CombinedOutput(); err != nil || strings.Contains(string(out), "mosquitto") {
		t.Errorf("for make dev it prints %q, %v", out, err)
	}
}
