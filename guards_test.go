//go:build !race

package motorpool_test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/require"
)

// unguarded are the goroutines of the service that begin without a guard, by file and function,
// each with the reason.
var unguarded = map[string]string{
	"broker/send.go: Drain":                 "waits for others",
	"broker/link/conn.go: Write":            "writes acknowledgements into a socket, and stands below the library",
	"broker/link/displace.go: eachRetained": "of the operator's tool, whose command ends with the panic",
	"cmd/motorpool/sign.go: stdin":          "of the operator's tool, whose command ends with the panic",
	"internal/logger/writer.go: NewWriter":  "the log itself",
	"rental/charging/collector.go: Run":     "waits for others",
	"rental/transitions/runner.go: Run":     "ends a context; its workers have the guard",
	"store/groupcommit/batcher.go: Begin":   "keepServing has the guard",
	"store/pg/dial.go: mortalDialer":        "closes a connection",
	"store/redis/pending.go: listenOnce":    "closes a connection",
	"store/events/events.go: followFrom":    "DB.Retry has the guard",
}

// notService are folders without code of the running service.
var notService = []string{
	"simulator/", "console/", "mosquitto/", "deploy/", "cmd/dev/", "cmd/simulate/", "lab/",
	"broker/brokertest/", "broker/link/linktest/", "rental/rentaltest/", "store/storetest/",
}

var guarded = regexp.MustCompile(`(?i)(guard|panics)\.(Do|Try|Keep)\(`)

// A goroutine that panics ends the process, and with it what all others do.
func TestGuards_EachGoroutineBeginsWithOne(t *testing.T) {
	set, used := token.NewFileSet(), map[string]bool{}
	for _, name := range trackedFiles(t, "*.go") {
		if strings.HasSuffix(name, "_test.go") ||
			slices.ContainsFunc(notService, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			continue
		}
		file, err := parser.ParseFile(set, filepath.FromSlash(name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			place := name + ": " + function.Name.Name
			ast.Inspect(function, func(n ast.Node) bool {
				run := started(n)
				var text strings.Builder
				switch {
				case run == nil:
				case unguarded[place] != "":
					used[place] = true
				case format.Node(&text, set, run) != nil || !guarded.MatchString(text.String()):
					t.Errorf("%s: a goroutine of %s begins without a guard: see package guard", set.Position(n.Pos()), function.Name.Name)
				}
				return true
			})
		}
	}
	for place := range unguarded {
		if !used[place] {
			t.Errorf("%s starts no goroutine without a guard any more: remove it from the list", place)
		}
	}
}

// started returns what a statement or call starts in a goroutine; nil: nothing.
func started(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.GoStmt:
		return n.Call
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 && slices.Contains([]string{"Go", "AfterFunc", "TryGo"}, f.Sel.Name) {
			return n.Args[len(n.Args)-1]
		}
	}
	return nil
}
