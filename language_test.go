package motorpool_test

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// phrases lists words that readers do not search for, or that have two meanings, and what to write
// instead. The test finds them in comments, in texts and, since it splits camel case, in
// identifiers.
var phrases = []struct{ words, instead string }{
	{"nobody|somebody|everybody|anybody|whoever", "name it: the caller, the unit, no instance, each client"},
	{"(is|are|was|were|be|been|being) told", "returned, published, logged, recorded, notified"},
	{"at once", "immediately, or concurrently"},
	{"for good", "permanently, from then on"},
	{"of (its|their) own", "own, separate"},
	{"beside", "concurrently with, next to, in addition to"},
	{"go by|goes by", "use, uses"},
	{"so many|so long", "name the number or the time"},
	{"under way|in hand", "in flight, running, open"},
	{"(is|are|was|were|be|been) away", "unavailable"},
	{"news", "updates, events; the word of a wake-up is a hint"},
	{"whomever|fates?", "name it: the client; result, outcome"},
	{"strangers?", "unknown unit, other client"},
	{"heeds?", "back off, obey"},
	{"ask again|asks again|asked again", "retransmit, repeat"},
	{"crowds?", "many waiters; name the number"},
	{"creditors?|debts?|tellers?", "outbox, retry queue, event publisher"},
	{"lines? of the history", "audit log entry"},
}

// quotations may contain such words: they are names and texts that other programs fix.
var quotations = []string{
	"`strangers`", // a table
	"still under way; ask again with the same key", // messages of the HTTP interface
	"a payment under way, uses it",
	`"postgres", "nobody"`, // users of Unix
	"a user postgres nor nobody",
}

// notYetChecked lists files, folders, and folders with those below them (/), whose words are not
// checked yet. The list may only get shorter.
var notYetChecked = []string{}

// languageExempt lists files that may have any words: published entries of the changelog stay as
// they are.
var languageExempt = []string{"CHANGELOG.md", "language_test.go"}

func TestLanguage_NoMisleadingPhrases(t *testing.T) {
	space := `(?:[\s>]|//)+`
	var alternatives []string
	for _, p := range phrases {
		alternatives = append(alternatives, strings.ReplaceAll(p.words, " ", space))
	}
	phrase := regexp.MustCompile(`\b(?:` + strings.Join(alternatives, "|") + `)\b`)
	spaces := regexp.MustCompile(space)
	instead := func(found string) string {
		found = spaces.ReplaceAllString(found, " ")
		for _, p := range phrases {
			if regexp.MustCompile(`^(?:` + p.words + `)$`).MatchString(found) {
				return p.instead
			}
		}
		return ""
	}
	unclean := map[string]bool{}
	for _, file := range trackedFiles(t, "*.go", "*.md") {
		if slices.Contains(languageExempt, file) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		for _, quotation := range quotations {
			text = strings.ReplaceAll(text, quotation, "")
		}
		text = lowerWords(text)
		for _, at := range phrase.FindAllStringIndex(text, -1) {
			if listed := notYet(file); listed != "" {
				unclean[listed] = true
				break
			}
			line := 1 + strings.Count(text[:at[0]], "\n")
			found := text[at[0]:at[1]]
			t.Errorf("%s:%d: %q: write %s", file, line, found, instead(found))
		}
	}
	for _, folder := range notYetChecked {
		if !unclean[folder] {
			t.Errorf("%s has no such word: remove it from notYetChecked", folder)
		}
	}
}

// lowerWords splits camel case into words, in lower case, and keeps the lines.
func lowerWords(text string) string {
	words := make([]byte, 0, len(text)+len(text)/16)
	for i := range len(text) {
		c := text[i]
		if c >= 'A' && c <= 'Z' {
			afterLower := i > 0 && text[i-1] >= 'a' && text[i-1] <= 'z'
			beforeLower := i > 0 && text[i-1] >= 'A' && text[i-1] <= 'Z' && i+1 < len(text) && text[i+1] >= 'a' && text[i+1] <= 'z'
			if afterLower || beforeLower { // aLine, ALine
				words = append(words, ' ')
			}
			c += 'a' - 'A'
		}
		words = append(words, c)
	}
	return string(words)
}

func notYet(file string) string {
	for _, folder := range notYetChecked {
		if file == folder || path.Dir(file) == folder || strings.HasSuffix(folder, "/") && strings.HasPrefix(file, folder) {
			return folder
		}
	}
	return ""
}

// unwrappable matches comments that cannot be wrapped: diagrams, the name of a law, directives,
// URLs.
var unwrappable = regexp.MustCompile(`^//(?:\t|   |go:)|^// \[[A-Z]+-\d+\]$|//nolint|https?://\S{60}`)

func TestLanguage_CommentsHaveAtMost100Columns(t *testing.T) {
	const most, tab = 100, "    "
	for _, file := range trackedFiles(t, "*.go") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(content), "\n")
		files := token.NewFileSet()
		of := files.AddFile(file, -1, len(content))
		var s scanner.Scanner
		s.Init(of, content, nil, scanner.ScanComments)
		for {
			pos, kind, text := s.Scan()
			if kind == token.EOF {
				break
			}
			if kind != token.COMMENT || unwrappable.MatchString(text) || strings.HasPrefix(text, "/*") {
				continue
			}
			at := of.Line(pos)
			line := strings.ReplaceAll(strings.TrimSuffix(lines[at-1], "\r"), "\t", tab)
			if width := utf8.RuneCountInString(line); width > most {
				t.Errorf("%s:%d: %d columns with its comment, at most %d: wrap it, or move it above the line", file, at, width, most)
			}
		}
	}
}

// The repository has only sources: a larger file was built or recorded, and does not belong in the
// history.
func TestRepository_NoLargeFiles(t *testing.T) {
	const most = 1 << 20
	for _, file := range trackedFiles(t) {
		if info, err := os.Lstat(file); err == nil && info.Size() > most {
			t.Errorf("%s has %d bytes; a tracked file may have at most %d", file, info.Size(), most)
		}
	}
}

// trackedFiles lists the files that git tracks and those that it would add, so that a mistake shows
// before the commit.
func trackedFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"}, patterns...)
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Lstat(file)
		return err != nil
	})
}
