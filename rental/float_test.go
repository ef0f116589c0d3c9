package rental_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Where money is: all of rental and its adapter, and what is named for it in the record and the interface.
var moneyFiles = []string{
	"*.go", "stripe/*.go",
	"../store/rentals/*.go",
	"../httpapi/booking*.go", "../httpapi/*_booking*.go", "../httpapi/amount*.go", "../httpapi/money*.go", "../httpapi/payment*.go", "../httpapi/price*.go", "../httpapi/pricing*.go",
}

// moneyReaders are functions of shared files that read money.
var moneyReaders = map[string][]string{"../store/vehicles/fleetpart.go": {"amount", "tax", "exact", "currency"}, "../store/vehicles/fleetfile.go": {"terms", "rate"}}

// notMoney are functions of those files that read ids, where 42.0 is 42.
var notMoney = []string{"wholeNumber"}

var (
	wholeBounds = regexp.MustCompile(`^(Max|Min)(Int|Uint)[0-9]*$`)
	floatNames  = regexp.MustCompile(`(?i)float|^complex(64|128)?$`) // types, conversions, functions of any library
	coordinates = regexp.MustCompile(`(?i)^(lat|lng|lon|latitude|longitude)$`)
)

// floats returns what is floating in a piece of a program.
func floats(set *token.FileSet, root ast.Node) []string {
	var found []string
	ast.Inspect(root, func(n ast.Node) bool {
		place := func(what string) {
			found = append(found, fmt.Sprintf("%s: %s", set.Position(n.Pos()), what))
		}
		switch n := n.(type) {
		case *ast.Field: // of a struct, or a function's argument
			if len(n.Names) > 0 && !slices.ContainsFunc(n.Names, func(name *ast.Ident) bool { return !coordinates.MatchString(name.Name) }) {
				return false
			}
		case *ast.Ident:
			if floatNames.MatchString(n.Name) {
				place(n.Name)
			}
		case *ast.BasicLit:
			if n.Kind == token.FLOAT || n.Kind == token.IMAG {
				place(n.Value)
			}
		case *ast.FuncDecl:
			if slices.Contains(notMoney, n.Name.Name) {
				return false
			}
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && of.Name == "math" && !wholeBounds.MatchString(n.Sel.Name) {
				place("math." + n.Sel.Name)
			}
			if slices.Contains([]string{"Hours", "AsMajorUnits"}, n.Sel.Name) && called(root, n) {
				place(n.Sel.Name + "()")
			}
		}
		return true
	})
	return found
}

// called reports whether a selector is called: Price.Hours is a field, Duration.Hours() a number that floats.
func called(root ast.Node, of *ast.SelectorExpr) (yes bool) {
	ast.Inspect(root, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		yes = yes || ok && call.Fun == of
		return !yes
	})
	return yes
}

func TestThereIsNoFloatingPointInMoney(t *testing.T) {
	set := token.NewFileSet()
	read := func(path string) *ast.File {
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	seen := 0
	for _, pattern := range moneyFiles {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			seen++
			for _, found := range floats(set, read(path)) {
				t.Errorf("%s floats", found)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d files were looked at", seen)
	}
	for path, names := range moneyReaders {
		for _, decl := range read(path).Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !slices.Contains(names, f.Name.Name) {
				continue
			}
			names = slices.DeleteFunc(names, func(name string) bool { return name == f.Name.Name })
			for _, found := range floats(set, f) {
				t.Errorf("%s floats", found)
			}
		}
		if len(names) > 0 {
			t.Errorf("%s has no %v", path, names)
		}
	}
}

func TestFloatingPointIsFoundWhereItIs(t *testing.T) {
	for text, want := range map[string]int{
		"var x float64": 1, "type t struct{ Amount float32 }": 1, "type t struct{ Latitude, Longitude float64 }": 0,
		"type t struct{ Latitude, Amount float64 }": 1, "var x = 1.5": 1, "var x = 1e2": 1, "func f(n int) { _ = float64(n) }": 1,
		"func f(r *big.Rat) { r.Float64() }": 1, "func f(s string) { strconv.ParseFloat(s, 64) }": 1, "func f(d time.Duration) { _ = d.Hours() }": 1,
		"func f(p Price) { _ = p.Hours }": 0, "var x = 100": 0, "var x = math.Round(y)": 1, "var x = math.MaxInt64": 0, "func wholeNumber(n int) { _ = float64(n) }": 0, "var x complex128": 1, "func f(d time.Duration) { g(1, d.Hours()) }": 1,
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "", "package p\n"+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if found := floats(set, file); len(found) != want {
			t.Errorf("%s: %v", text, found)
		}
	}
}
