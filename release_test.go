package motorpool_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// goreleaser is the version against whose schema the release configuration is validated. Only its
// module is downloaded, for the schema: building the program takes minutes.
const goreleaser = "github.com/goreleaser/goreleaser/v2@v2.13.0"

func TestReleaseIsConfiguredByGoReleasersSchema(t *testing.T) {
	downloaded, err := exec.Command("go", "mod", "download", "-json", goreleaser).Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(downloaded, &module) != nil {
		t.Fatalf("go mod download %s: %v\n%s", goreleaser, err, downloaded)
	}
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(module.Dir, "www/docs/static/schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(release(t)); err != nil {
		t.Errorf("the release configuration does not match the schema: %v", err)
	}
}

// release returns the configuration, with the types of JSON.
func release(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	config, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
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
