// Package release_test checks the releases: their configuration, notes and tags.
package release_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// goreleaser is the version against whose schema the release configuration is validated. Only its
// module is downloaded, for the schema: building the program takes minutes.
const goreleaser = "github.com/goreleaser/goreleaser/v2@v2.13.0"

func TestRelease_IsConfiguredByGoReleasersSchema(t *testing.T) {
	downloaded, err := exec.Command("go", "mod", "download", "-json", goreleaser).Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(downloaded, &module) != nil {
		t.Fatalf("go mod download %s: %v\n%s", goreleaser, err, downloaded)
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(module.Dir, "www/docs/static/schema.json"))
	require.NoError(t, err)
	assert.NoError(t, schema.Validate(release(t)), "the release configuration does not match the schema")
}

// release returns the configuration, with the types of JSON.
func release(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(".goreleaser.yaml")
	require.NoError(t, err)
	asJSON, err := yaml.YAMLToJSON(text)
	require.NoError(t, err)
	config, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	require.NoError(t, err)
	return config.(map[string]any)
}

// Everything that a release builds and packs exists, and every build sets the version that
// 'motorpool version' prints.
func TestRelease_NamesExistingFiles(t *testing.T) {
	config := release(t)
	var ids []string
	for _, build := range config["builds"].([]any) {
		build := build.(map[string]any)
		ids = append(ids, build["id"].(string))
		if files, err := filepath.Glob(build["main"].(string) + "/main.go"); err != nil || len(files) != 1 {
			t.Errorf("%s is not a program: %v", build["main"], err)
		}
		if flags := build["ldflags"].([]any)[0].(string); !strings.Contains(flags, "-X main.version={{ .Version }}") {
			t.Errorf("%s is built with the flags %s, which do not set the version", build["id"], flags)
		}
	}
	for _, pack := range config["nfpms"].([]any) {
		pack := pack.(map[string]any)
		for _, id := range pack["ids"].([]any) {
			if !slices.Contains(ids, id.(string)) {
				t.Errorf("a package contains %s, which is not built", id)
			}
		}
		for _, content := range pack["contents"].([]any) {
			src := content.(map[string]any)["src"].(string)
			if files, err := filepath.Glob(src); err != nil || len(files) == 0 {
				t.Errorf("%s: no such file: %v", src, err)
			}
		}
	}
}

// releases returns the versions of the sections of CHANGELOG.md, newest first.
func releases(t *testing.T) (versions []string) {
	t.Helper()
	text, err := os.ReadFile("CHANGELOG.md")
	require.NoError(t, err)
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(text), -1) {
		if heading[1] == "Unreleased" && versions == nil {
			continue
		}
		section := regexp.MustCompile(`^(\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$`).FindStringSubmatch(heading[1])
		if section == nil {
			t.Fatalf("## %s is neither Unreleased nor a version with a date", heading[1])
		}
		versions = append(versions, section[1])
	}
	return versions
}

// Each release has notes, and a schema from which a test upgrades. Each tag of this clone is a
// release.
func TestReleases_HaveNotesAndASchema(t *testing.T) {
	list, err := os.ReadFile("store/migrations/testdata/releases")
	require.NoError(t, err)
	var listed []string
	for _, line := range regexp.MustCompile(`(?m)^v(\S+) `).FindAllStringSubmatch(string(list), -1) {
		listed = append(listed, line[1])
	}
	slices.Reverse(listed)
	if noted := releases(t); !slices.Equal(noted, listed) {
		t.Errorf("CHANGELOG.md has the releases %v, and store/migrations/testdata/releases %v", noted, listed)
	}
	tags, err := exec.Command("git", "tag", "--list", "v*").Output()
	require.NoError(t, err, "git tag")
	for _, tag := range strings.Fields(string(tags)) {
		if !slices.Contains(listed, strings.TrimPrefix(tag, "v")) {
			t.Errorf("the tag %s has no section of CHANGELOG.md", tag)
		}
	}
}

func TestRelease_TagHasTheNotes(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{".ci/release", "CHANGELOG.md", "store/migrations/testdata/releases"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o755)
		}
		require.NoError(t, err)
	}
	run := func(name string, args ...string) (string, error) {
		command := exec.Command(name, args...)
		command.Dir = folder
		command.Env = append(
			os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		)
		said, err := command.CombinedOutput()
		return string(said), err
	}
	newest := releases(t)[0]
	if said, err := run("git", "init", "-q"); err != nil {
		t.Fatal(said)
	}
	if said, err := run(".ci/release", newest); err == nil || !strings.Contains(said, "commit first") {
		t.Errorf("with changes: %v %s", err, said)
	}
	for _, args := range [][]string{{"add", "."}, {"commit", "-qm", "all"}} {
		if said, err := run("git", args...); err != nil {
			t.Fatal(said)
		}
	}
	if said, err := run(".ci/release", "9.9.9"); err == nil || !strings.Contains(said, "releases has no line of v9.9.9") {
		t.Errorf("a version without notes: %v %s", err, said)
	}
	said, err := run(".ci/release", newest)
	if err != nil || !strings.HasPrefix(said, "Motorpool "+newest+"\n\n### ") || strings.Contains(said, "\n## ") {
		t.Errorf("the tag: %v\n%.200s", err, said)
	}
	if tagged, err := run("git", "describe", "--exact-match"); err != nil || tagged != "v"+newest+"\n" {
		t.Errorf("git describe: %s, want v%s", tagged, newest)
	}
}
