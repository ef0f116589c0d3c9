package motorpool_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The pages that a newcomer looks for are there, are reached from the README, and name nothing that
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
			t.Errorf("README.md does not lead to %s", name)
		}
		text := read(name)
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(link[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, target := range regexp.MustCompile(`(?m)^make (\w+)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+target[1]+":") {
				t.Errorf("%s: there is no make %s", name, target[1])
			}
		}
		if regexp.MustCompile(`[\w.]+@[\w-]+\.\w+`).MatchString(text) {
			t.Errorf("%s names an e-mail address", name)
		}
	}
	if _, err := os.Stat("LICENSE"); err != nil && !strings.Contains(readme, "has not chosen a licence") {
		t.Error("README.md does not say that there is no licence")
	}
}
