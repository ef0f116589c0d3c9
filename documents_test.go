//go:build !race

package motorpool_test

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"motorpool/internal/require"
	"motorpool/telematics"
)

// The pages for contributors exist, README.md links to them, and they name no file or target that
// does not exist.
func TestPages_ForContributorsAreThere(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
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

// What the pages name in backticks exists, or is built: files, folders and packages, tests,
// and, of docs/architecture.md, what Go files declare: `Send` in `broker/send.go` is in that file.
func TestDocuments_NamePathsAndDeclarationsThatExist(t *testing.T) {
	exists, declared := map[string]bool{}, map[string]bool{}
	inFile := map[string]map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|(?:type|var|const) )(\w+)`)
	for _, file := range trackedFiles(t) {
		for path := file; path != "."; path = filepath.Dir(path) {
			exists[path] = true
		}
		if filepath.Ext(file) == ".go" {
			inFile[file] = map[string]bool{}
			for _, name := range declaration.FindAllSubmatch(mustRead(t, file), -1) {
				declared[string(name[1])], inFile[file][string(name[1])] = true, true
			}
		}
	}
	fence := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	quoted := regexp.MustCompile("`([^`]+)`")
	isPath := regexp.MustCompile(`^\.?[\w-][\w.-]*(/[\w.-]+)*/?$`)
	isName := regexp.MustCompile(`^[A-Za-z]*[a-z][A-Za-z]*[A-Z]\w*$|^[A-Z][a-z]\w*$`)
	isTest := regexp.MustCompile(`^Test[A-Z]\w+$`)
	inAFile := regexp.MustCompile("`(\\w+)`(?: and `(\\w+)`)?\\s+in\\s+`([\\w./]+\\.go)`")
	paths, tests := map[string]int{}, map[string]int{} // how many each page names
	for _, page := range pages(t) {
		text := fence.ReplaceAllString(string(mustRead(t, page)), "")
		ofContributors := page == "README.md" || page == "CONTRIBUTING.md" || page == "docs/architecture.md"
		for _, match := range quoted.FindAllStringSubmatch(text, -1) {
			name := strings.TrimSuffix(match[1], "/")
			top, _, inside := strings.Cut(name, "/")
			switch {
			case isTest.MatchString(name):
				if tests[page]++; !declared[name] {
					t.Errorf("%s names %s, which does not exist", page, name)
				}
			case isPath.MatchString(name) && (inside && (ofContributors || exists[top]) ||
				ofContributors && (filepath.Ext(name) == ".go" || filepath.Ext(name) == ".md")):
				if paths[page]++; !exists[name] && exec.Command("git", "check-ignore", "--quiet", name).Run() != nil {
					t.Errorf("%s names %s, which does not exist", page, name)
				}
			case page == "docs/architecture.md" && isName.MatchString(name) && !declared[name]:
				t.Errorf("%s names %s, which no Go file declares", page, name)
			}
		}
		for _, match := range inAFile.FindAllStringSubmatch(text, -1) {
			for _, name := range match[1:3] {
				if name != "" && !inFile[match[3]][name] {
					t.Errorf("%s names %s in %s, which does not declare it", page, name, match[3])
				}
			}
		}
	}
	if named, shown := paths["docs/architecture.md"], tests["docs/security.md"]; named < 80 || shown < 20 {
		t.Errorf("docs/architecture.md names %d paths, docs/security.md %d tests; want at least 80 and 20", named, shown)
	}
}

// The lines of the log that the pages for operators quote are in the code, so that a search finds
// them.
func TestDocuments_QuoteLinesOfTheLogThatExist(t *testing.T) {
	var code strings.Builder
	for _, file := range trackedFiles(t, "*.go", ":!*_test.go") {
		code.Write(mustRead(t, file))
	}
	quoted, found := regexp.MustCompile("`([a-z]+(?:[ \\n]+[a-z0-9',]+){2,})`"), 0
	for _, name := range []string{"alerts", "backup", "console", "metrics", "operating", "payments", "servers"} {
		for _, line := range quoted.FindAllStringSubmatch(string(mustRead(t, "docs/"+name+".md")), -1) {
			text := strings.Join(strings.Fields(line[1]), " ")
			if found++; !strings.Contains(code.String(), text) && !regexp.MustCompile("^(motorpool|delete) ").MatchString(text) {
				t.Errorf("docs/%s.md quotes %q, which the code does not have", name, text)
			}
		}
	}
	if found < 20 {
		t.Errorf("the pages quote %d lines, want at least 20", found)
	}
}

// Each control action is in the list that its readers search.
func TestDocuments_ListEachControlAction(t *testing.T) {
	const name = "docs/http-commands.md"
	text := string(mustRead(t, name))
	for _, action := range telematics.ControlActions {
		if !strings.Contains(text, "`"+string(action)+"`") {
			t.Errorf("%s does not list `%s`", name, action)
		}
	}
}

func TestDecisions_AreInTheIndex(t *testing.T) {
	index, err := os.ReadFile("docs/adr/README.md")
	require.NoError(t, err)
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

// Links between the pages of the repository lead to a file and a heading that exist, and so do the
// pages that messages, alerts, the console and comments name.
func TestDocuments_LinksLeadToHeadingsThatExist(t *testing.T) {
	anchors := map[string]map[string]bool{}
	leads := func(from, file, anchor string) {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", from, err)
			return
		}
		if anchor == "" || filepath.Ext(file) != ".md" {
			return
		}
		if anchors[file] == nil {
			anchors[file] = map[string]bool{}
			for _, heading := range headings(string(mustRead(t, file)), "#") {
				anchors[file][anchorOf(heading)] = true
			}
		}
		if !anchors[file][anchor] {
			t.Errorf("%s links to %s, which has no heading #%s", from, file, anchor)
		}
	}
	links, mentions := 0, 0
	for _, name := range pages(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(string(mustRead(t, name)), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, ":") || strings.HasPrefix(target, "/") {
				continue
			}
			links++
			if target != "" {
				target = filepath.Join(filepath.Dir(name), target)
			}
			leads(name, cmp.Or(target, name), anchor)
		}
	}
	for _, name := range trackedFiles(t, "*.go", "*.yml", "*.yaml", "*.ts", "*.svelte", "Makefile") {
		for _, mention := range regexp.MustCompile(`\b(docs/[\w/-]+\.md)(?:#([\w-]+))?`).FindAllStringSubmatch(string(mustRead(t,
			name)), -1) {
			mentions++
			leads(name, mention[1], mention[2])
		}
	}
	if links < 300 || mentions < 100 {
		t.Errorf("found %d links and %d mentions, want more than 300 and 100", links, mentions)
	}
}

// Prose is wrapped at 100 columns. Tables, code, headings and the targets of links may be longer.
func TestDocuments_ProseHasAtMost100Columns(t *testing.T) {
	const most = 100
	target := regexp.MustCompile(`\]\([^)]*\)`)
	for _, name := range append(pages(t), "CHANGELOG.md") {
		code := false
		for n, line := range strings.Split(string(mustRead(t, name)), "\n") {
			trimmed := strings.TrimSpace(line)
			fenced := strings.HasPrefix(trimmed, "```")
			code = code != fenced
			if code || fenced || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "<!--") ||
				strings.HasPrefix(trimmed, "![") {
				continue
			}
			if width := utf8.RuneCountInString(target.ReplaceAllString(line, "]")); width > most {
				t.Errorf("%s:%d: %d columns, at most %d: wrap it", name, n+1, width, most)
			}
		}
	}
}

// A page that does not fit on two screens begins with its contents, and none is a book but the
// protocol, which is read as a whole.
func TestPages_BeginWithTheirContents(t *testing.T) {
	longest := map[string]int{"docs/protocol.md": 7400}
	for name, most := range map[string]int{"README.md": 150, "docs/architecture.md": 220} {
		if lines := strings.Count(string(mustRead(t, name)), "\n"); lines > most {
			t.Errorf("%s has %d lines, the most is %d", name, lines, most)
		}
	}
	for _, name := range pages(t) {
		if filepath.Dir(name) != "docs" {
			continue
		}
		text := string(mustRead(t, name))
		if words, most := len(strings.Fields(text)), cmp.Or(longest[name], 4000); words > most {
			t.Errorf("%s has %d words, the most is %d: split it by task, or remove what another page says", name, words, most)
		}
		sections := headings(text, "## ")
		if len(strings.Fields(text)) < 1500 || len(sections) < 3 {
			continue
		}
		contents, _, _ := strings.Cut(text, "\n## ")
		for _, heading := range sections {
			if !strings.Contains(contents, "](#"+anchorOf(heading)+")") {
				t.Errorf("%s does not link to its section %q before its first section", name, heading)
			}
		}
	}
}

// pages returns the Markdown files of the repository that people write.
func pages(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" && path != "CHANGELOG.md" {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) < 50 {
		t.Fatal(len(names), err)
	}
	return names
}

// headings returns the headings of a page outside of code that begin with the prefix.
func headings(text, prefix string) []string {
	var found []string
	code := false
	for line := range strings.Lines(text) {
		code = code != strings.HasPrefix(line, "```")
		if !code && strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(strings.TrimLeft(line, "#")))
		}
	}
	return found
}

// anchorOf returns the anchor that a heading has at GitHub and GitLab.
func anchorOf(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return text
}
