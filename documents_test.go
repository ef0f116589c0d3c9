package motorpool_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"motorpool/telematics"
)

// The pages for contributors exist, README.md links to them, and they name no file or target that
// does not exist.
func TestPagesForContributorsAreThere(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	readme, makefile := read("README.md"), read("Makefile")
	for _, name := range []string{"CONTRIBUTING.md", "SECURITY.md"} {
		if !strings.Contains(readme, "]("+name+")") {
			t.Errorf("README.md has no link to %s", name)
		}
		text := read(name)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(link[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, target := range regexp.MustCompile(`(?m)^make (\w+)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+target[1]+":") {
				t.Errorf("%s names make %s, which does not exist", name, target[1])
			}
		}
		if regexp.MustCompile(`[\w.]+@[\w-]+\.\w+`).MatchString(text) {
			t.Errorf("%s names an e-mail address", name)
		}
	}
	if _, err := os.Stat("LICENSE"); err != nil && !strings.Contains(readme, "has not chosen a licence") {
		t.Error("there is no LICENSE, but README.md does not say so")
	}
}

// Each control action is in the lists that its readers search.
func TestDocumentsListEachControlAction(t *testing.T) {
	for name, form := range map[string]string{"docs/http.md": "/control/%s` |", "docs/cli.md": "`%s`"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range telematics.ControlActions {
			if want := strings.Replace(form, "%s", string(action), 1); !strings.Contains(string(text), want) {
				t.Errorf("%s does not list %s: write %s", name, action, want)
			}
		}
	}
}

// The tests that docs/security.md names exist.
func TestSecurityPageNamesTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAllSubmatch(text, -1) {
			tests[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 20 {
		t.Errorf("docs/security.md names %d tests, want at least 20", len(named))
	}
	for _, match := range named {
		if !tests[string(match[1])] {
			t.Errorf("docs/security.md names %s, which does not exist", match[1])
		}
	}
}

func TestEachDecisionIsInTheIndex(t *testing.T) {
	index, err := os.ReadFile("docs/adr/README.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := fs.Glob(os.DirFS("docs/adr"), "0*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatal(decisions, err)
	}
	for _, name := range decisions {
		if strings.Count(string(index), "]("+name+")") != 1 {
			t.Errorf("docs/adr/README.md must link to %s exactly once", name)
		}
	}
}
