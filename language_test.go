//go:build !race

package motorpool_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"motorpool/internal/require"
)

// phrases lists words that readers do not search for, or that have two meanings, and what to write
// instead. The test finds them in comments, in texts and, since it splits camel case, in
// identifiers.
var phrases = []struct{ words, instead string }{
	{"nobody|somebody|everybody|anybody|whoever", "name it: the caller, the unit, no instance, each client"},
	{"is told|are told|was told|were told|be told|been told|being told", "returned, published, logged, recorded, notified"},
	{"at once", "immediately, or concurrently"},
	{"for good", "permanently, from then on"},
	{"of its own|of their own", "own, separate"},
	{"beside", "concurrently with, next to, in addition to"},
	{"go by|goes by", "use, uses"},
	{"so many|so long", "name the number or the time"},
	{"under way|in hand", "in flight, running, open"},
	{"is away|are away|was away|were away|be away|been away", "unavailable"},
	{"news", "updates, events; the word of a wake-up is a hint"},
	{"whomever|fate|fates", "name it: the client; result, outcome"},
	{"stranger|strangers", "unknown unit, other client"},
	{"heed|heeds", "back off, obey"},
	{"ask again|asks again|asked again", "retransmit, repeat"},
	{"crowd|crowds", "many waiters; name the number"},
	{"creditor|creditors|debt|debts|teller|tellers", "outbox, retry queue, event publisher"},
	{"line of the history|lines of the history|activity history", "audit log entry, audit log"},
	{"request breaks a rule", "the request is not valid"},
	{"nothing at this address", "no such endpoint"},
	{"drew attention|draws attention", "attention signal sent"},
	{"acquaintance|acquaintances", "first or last seen, discovered"},
	{"talk to us|talks to us|talked to us", "sends messages"},
	{"our side", "the service"},
	{"turned to again|be turned to|been turned to|is turned to", "retried, processed"},
	{"person's words", "reason, text"},
	{"signs no more", "retired"},
	{"falling id", "descending id"},
}

// quotations may contain such words: they are names and texts that other programs fix.
var quotations = []string{
	"`strangers`",          // a table
	`"postgres", "nobody"`, // users of Unix
	"a user postgres nor nobody",
}

// languageExempt lists files that may have any words: published entries of the changelog stay as
// they are.
var languageExempt = []string{"CHANGELOG.md", "language_test.go"}

func TestLanguage_NoMisleadingPhrases(t *testing.T) {
	instead, begins, longest := map[string]string{}, map[string]bool{}, 0
	for _, p := range phrases {
		for phrase := range strings.SplitSeq(p.words, "|") {
			words := strings.Fields(phrase)
			instead[phrase], begins[words[0]], longest = p.instead, true, max(longest, len(words))
		}
	}
	for _, file := range trackedFiles(
		t, "*.go", "*.md", "httpapi/openapi.yaml", "console/src/*.ts", "console/src/*.svelte", "clients/*.ts",
	) {
		if slices.Contains(languageExempt, file) {
			continue
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		text := string(content)
		for _, quotation := range quotations {
			text = strings.ReplaceAll(text, quotation, "")
		}
		text = lowerWords(text)
		for at, end := nextWord(text, 0); at < end; at, end = nextWord(text, end) {
			if !begins[text[at:end]] {
				continue
			}
			phrase := text[at:end]
			for last := end; instead[phrase] == "" && strings.Count(phrase, " ") < longest-1; {
				next, after := nextWord(text, last)
				if next == after || !isSpace(text[last:next]) {
					break
				}
				phrase, last = phrase+" "+text[next:after], after
			}
			if write := instead[phrase]; write != "" {
				t.Errorf("%s:%d: %q: write %s", file, 1+strings.Count(text[:at], "\n"), phrase, write)
			}
		}
	}
}

// nextWord returns where the next word of a text begins and ends; the same twice: there is none.
func nextWord(text string, from int) (at, end int) {
	isPart := func(r rune) bool { return r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
	at = strings.IndexFunc(text[from:], isPart)
	if at < 0 {
		return len(text), len(text)
	}
	at += from
	length := strings.IndexFunc(text[at:], func(r rune) bool { return !isPart(r) })
	if length < 0 {
		return at, len(text)
	}
	return at, at + length
}

// isSpace reports whether two words with this between them may be a phrase, also over lines.
func isSpace(between string) bool {
	return between != "" && strings.Trim(strings.ReplaceAll(between, "//", " "), " \t\r\n>") == ""
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

// unwrappable matches comments that cannot be wrapped: diagrams, the name of a law, directives,
// URLs.
var unwrappable = regexp.MustCompile(`^//(?:\t|   |go:)|^// \[[A-Z]+-\d+\]$|//nolint|https?://\S{60}`)

func TestLanguage_CommentsHaveAtMost100Columns(t *testing.T) {
	const most, tab = 100, "    "
	for _, file := range trackedFiles(t, "*.go") {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
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

func TestLanguage_LinesHaveAtMost140Columns(t *testing.T) {
	const most, tab = 140, "    "
	for _, file := range trackedFiles(t, "*.go", "*.ts", "*.svelte") {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		at := 0
		for line := range strings.Lines(string(content)) {
			at++
			line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", tab)
			if width := utf8.RuneCountInString(line); width > most {
				t.Errorf("%s:%d: %d columns, at most %d: break it, or name a part of it", file, at, width, most)
			}
		}
	}
}

// Comments that say which error a function returns, or where that is said. Methods of interfaces of
// the standard library have their contract there.
var (
	namesErrors = regexp.MustCompile(`(?i)\b(errors?|fails?|refus\w+|implements)\b|\bErr[A-Z]|[a-z]Error\b|` +
		`returns?\s+nil|returns\s+(why|what\s+is\s+wrong)`)
	ofStandard = regexp.MustCompile(`^(Unwrap|(Unm|M)arshal(Text|JSON))$`)
)

// An exported function of the product that returns an error says which: in its comment, or, where
// all of a package return the same, in the comment of the package.
func TestLanguage_CommentsNameErrors(t *testing.T) {
	isProduct := func(file string) bool {
		folder := filepath.ToSlash(filepath.Dir(file))
		return !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(folder, "test") &&
			!slices.Contains([]string{"cmd", "lab", "simulator"}, strings.Split(folder, "/")[0])
	}
	unnamed, named := map[string][]string{}, map[string]bool{}
	for _, file := range trackedFiles(t, "*.go") {
		if !isProduct(file) {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		folder := filepath.Dir(file)
		named[folder] = named[folder] || namesErrors.MatchString(parsed.Doc.Text())
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && isExported(f) && returnsError(f.Type) && !ofStandard.MatchString(f.Name.Name) &&
				!namesErrors.MatchString(f.Doc.Text()) {
				unnamed[folder] = append(unnamed[folder], fmt.Sprintf("%s: %s", files.Position(f.Pos()), f.Name.Name))
			}
		}
	}
	for folder, functions := range unnamed {
		if !named[folder] {
			t.Errorf("no comment says with which error these fail:\n%s", strings.Join(functions, "\n"))
		}
	}
}

// isExported reports whether other packages can name a function, or the type of a method.
func isExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return f.Name.IsExported()
	}
	receiver := strings.TrimLeft(types.ExprString(f.Recv.List[0].Type), "*")
	return f.Name.IsExported() && ast.IsExported(receiver)
}

func returnsError(f *ast.FuncType) bool {
	if f.Results == nil {
		return false
	}
	last, ok := f.Results.List[len(f.Results.List)-1].Type.(*ast.Ident)
	return ok && last.Name == "error"
}

// testName is the one form: what is tested, and the rule; for a function alone its name, of one or
// two words.
var testName = regexp.MustCompile(`^(Main|[A-Z]\w*_[A-Z]\w*|[A-Z]+[a-z0-9]*([A-Z]+[a-z0-9]*)?)$`)

func TestLanguage_TestsAreNamedByWhatTheyTestAndItsRule(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^func Test(\w+)\(`)
	for _, file := range trackedFiles(t, "*_test.go") {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range declared.FindAllSubmatch(content, -1) {
			if !testName.Match(name[1]) {
				t.Errorf("%s: Test%s: name it TestSubject_Rule", file, name[1])
			}
		}
	}
}

// The repository has only sources: a larger file was built or recorded, and does not belong in the
// history. One without content was left behind.
func TestRepository_NoLargeAndNoEmptyFiles(t *testing.T) {
	const most = 1 << 20
	for _, file := range trackedFiles(t) {
		info, err := os.Lstat(file)
		switch {
		case err != nil:
			t.Error(err)
		case info.Size() == 0:
			t.Errorf("%s is empty", file)
		case info.Size() > most:
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
	require.NoError(t, err, "git ls-files")
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Lstat(file)
		return err != nil
	})
}
