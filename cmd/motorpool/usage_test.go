package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/internal/app"
	"motorpool/internal/require"
	"motorpool/internal/settings"
	"motorpool/store/storetest"
)

// required are arguments that commands need, by the beginning of their names.
var required = map[string][]string{
	"agency key add": {"1"}, "agency key retire": {"--agency", "1", "ak_1", "720h"},
	"agency key revoke": {"--agency", "1", "ak_1"}, "alerts acknowledge": {"x"},
	"alerts rules": {"1"}, "attention": {"42"}, "bulk": {"lock", "42"},
	"bulk-status": {"x"}, "command": {"x"}, "halt": {"--why", "x"},
	"import": {"/dev/null"},
	"keys activate": {
		"k",
	},
	"keys remove": {"k"}, "keys public": {"/dev/null"}, "lock": {"42"}, "unlock": {"42"},
	"enable-driving": {"42"}, "disable-driving": {"42"},
	"unlock-and-enable-driving": {
		"42",
	},
	"lock-and-disable-driving": {"42"}, "open-top-case": {"42"}, "sign": {"get", "/"},
	"status": {"--refresh", "42"}, "completion": {"bash"},
	"unit add": {"u1"}, "unit rotate": {"u1"}, "unit remove": {"u1"},
	"operator add": {"anna", "--role", "viewer"}, "operator password": {"anna"},
	"operator remove": {"anna"},
}

func TestUsage_NumbersAndDurationsAreChecked(t *testing.T) {
	// The service refuses what it alone can check. A value that is not checked reaches a database
	// that is not there.
	serving(t, says(http.StatusUnprocessableEntity, `{"success":false,"message":"No.","error":{"code":"validation_failed"}}`))
	t.Setenv("MOTORPOOL_DATABASE_URL", "postgres://x@127.0.0.1:1/x?sslmode=disable")
	for _, name := range []string{"AGENCY_KEY_ID", "CLIENT_TOKEN"} {
		t.Setenv(name, "x")
	}
	t.Setenv("AGENCY_SECRET", strings.Repeat("0a", 32))
	t.Setenv("MOTORPOOL_KEY", filepath.Join(t.TempDir(), "keys"))
	if pair, err := output(t, "keys", "new"); err != nil || os.WriteFile(os.Getenv("MOTORPOOL_KEY"), []byte(pair), 0o600) != nil {
		t.Fatal(err)
	}
	var c commandLine
	var reader settings.Reader
	parser, err := kong.New(&c, reader.Options("MOTORPOOL", app.HelpTexts, helpTexts)...)
	require.NoError(t, err)
	tried := 0
	for _, leaf := range parser.Model.Leaves(true) {
		command := strings.TrimPrefix(leaf.FullPath(), parser.Model.Name+" ")
		if command == "serve" {
			continue // app.Config.Check
		}
		for _, flag := range leaf.Flags {
			kind := flag.Target.Type()
			if kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			values := map[reflect.Type][]string{
				reflect.TypeFor[time.Duration](): {"soon", "-1s"}, reflect.TypeFor[int](): {"x", "-1"},
				reflect.TypeFor[int64](): {"x", "-1"},
			}[kind]
			for _, value := range values {
				tried++
				args := append(strings.Fields(command), required[command]...)
				args = append(args, fmt.Sprintf("--%s=%s", flag.Name, value))
				_, err := output(t, args...)
				named := err != nil &&
					(strings.Contains(err.Error(), "--"+flag.Name) || kind.Kind() == reflect.Int && strings.Contains(err.Error(), "No."))
				if exitCode(err) != exitUsage || !named {
					t.Errorf("%v: exit code %d, want %d and the flag: %v", args, exitCode(err), exitUsage, err)
				}
			}
		}
	}
	if tried < 50 {
		t.Errorf("tried %d values, want at least 50", tried)
	}
}

// The misspelt variable is often why a setting is missing.
func TestVariables_UnknownOnesAreNamedWithOtherProblems(t *testing.T) {
	t.Chdir(t.TempDir()) // without keys
	t.Setenv("MOTORPOOL_SIGNING_KEY", "elsewhere.jwks")
	for _, args := range [][]string{{"serve"}, {"lock"}, {"vehicles", "--limit", "many"}} {
		wrong := tool(t, args...).exits(exitUsage)
		const want = "MOTORPOOL_SIGNING_KEY is not a setting: did you mean MOTORPOOL_SIGNING_KEYS?\n"
		wrong.must(strings.Contains(wrong.said, want), "it to say %q", want)
	}
}

// Each command that works on the database says which setting is wrong.
func TestDatabase_ErrorsNameItsSetting(t *testing.T) {
	address, err := url.Parse(storetest.NewEmptyDatabase(t))
	require.NoError(t, err)
	at := func(change func(*url.URL)) string {
		changed := *address
		change(&changed)
		return changed.String()
	}
	addresses := map[string]struct {
		url  string
		code int
	}{
		"not an address":   {"nonsense", exitUsage},
		"no server":        {at(func(u *url.URL) { u.Host = "127.0.0.1:1" }), exitUnavailable},
		"no such database": {at(func(u *url.URL) { u.Path = "/none" }), exitFailed},
		"no such role":     {at(func(u *url.URL) { u.User = url.UserPassword("none", "none") }), exitFailed},
		"TLS":              {at(func(u *url.URL) { u.RawQuery = "sslmode=require" }), exitFailed},
	}
	for _, args := range [][]string{
		{"migrate"}, {"import", "-"}, {"prune"}, {"seq", "advance"}, {"operator", "list"}, {"activity", "export"},
		{"agency", "key", "list", "--direct"},
	} {
		for name, c := range addresses {
			t.Setenv("MOTORPOOL_DATABASE_URL", c.url)
			fromStdin(t, smallFleet)
			_, err := output(t, args...)
			if exitCode(err) != c.code || strings.Count(fmt.Sprint(err), "--database-url") != 1 {
				t.Errorf("%v, %s: exit code %d, want %d and the setting once: %v", args, name, exitCode(err), c.code, err)
			}
			if name == "TLS" && !strings.Contains(fmt.Sprint(err), "sslmode=disable") {
				t.Errorf("%v: %v does not say how to connect without TLS", args, err)
			}
		}
	}
}

func TestVariables_UnknownOnesAreNamed(t *testing.T) {
	t.Setenv("MOTORPOOL_TOKNE", "secret")
	t.Setenv("MOTORPOOL_AGENCY", "1") // a flag that no variable sets
	serving(t, says(http.StatusOK, done(`[]`)))
	tool(t, "vehicles").
		says("MOTORPOOL_TOKNE is not a setting: did you mean MOTORPOOL_TOKEN?\n").says("MOTORPOOL_AGENCY is not a setting\n")
}

// The command lines of the pages, up to their first argument that is not a command, have commands
// and flags that exist; so have variables, and the defaults of limits.
func TestDocuments_CommandsFlagsVariablesAndLimitsExist(t *testing.T) {
	var c commandLine
	var reader settings.Reader
	parser, err := kong.New(&c, append(reader.Options("MOTORPOOL", app.HelpTexts, helpTexts), kong.Name("motorpool"))...)
	require.NoError(t, err)
	flags := map[string]*kong.Flag{}
	for _, leaf := range parser.Model.Leaves(false) {
		for _, flag := range leaf.Flags {
			flags[leaf.FullPath()+" --"+flag.Name] = flag
		}
	}
	var environment []string
	commands, limits := 0, 0
	line := regexp.MustCompile("(?m)(?:^|[ /`(\"])motorpool ((?:[a-z][a-z-]* )*[a-z][a-z-]*)( [^`|>#;)\n]*)?")
	for _, pattern := range []string{"*.md", "docs/*.md", "mosquitto/README.md", "docs/signing/README.md"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", pattern))
		require.NoError(t, err)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			if filepath.Base(page) == "CHANGELOG.md" {
				continue // of former versions, too
			}
			for _, variable := range regexp.MustCompile(`\bMOTORPOOL_[A-Z_]+`).FindAllString(string(text), -1) {
				environment = append(environment, variable+"=")
			}
			for _, limit := range regexp.MustCompile("(?m)\\| ([\\d,]+)[^|]* \\| `--([a-z-]+)`").FindAllStringSubmatch(string(text), -1) {
				if limits++; flags["motorpool serve --"+limit[2]].Default != strings.ReplaceAll(limit[1], ",", "") {
					t.Errorf("%s: --%s is not %s by default", page, limit[2], limit[1])
				}
			}
			for _, said := range line.FindAllStringSubmatch(string(text), -1) {
				node := parser.Model.Node
				// What has a list shows it without another word.
				for _, word := range append(strings.Fields(said[1]), "list") {
					if i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word }); i >= 0 {
						node = node.Children[i]
					}
				}
				if node == parser.Model.Node {
					continue // the name of an account, or of a database
				}
				commands++
				for _, flag := range regexp.MustCompile(`(?:^| )(--[a-z-]+)`).FindAllStringSubmatch(said[2], -1) {
					if node.Leaf() && flags[node.FullPath()+" "+flag[1]] == nil && flag[1] != "--help" {
						t.Errorf("%s: %s has no %s", page, node.FullPath(), flag[1])
					}
				}
			}
		}
	}
	for _, variable := range settings.UnknownVariables(parser.Model.Node, environment, "MOTORPOOL", "MOTORPOOL_DEV", "MOTORPOOL_SIM") {
		t.Error(variable)
	}
	if commands < 80 || limits < 6 {
		t.Errorf("found %d command lines and %d limits, want at least 80 and 6", commands, limits)
	}
}
