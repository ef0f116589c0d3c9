package httpapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"motorpool/httpapi"
	"motorpool/internal/require"
	"motorpool/rental/rentaltest"
	"motorpool/rental/wallet"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

const (
	accessDocument = "../docs/access.md"
	accessBegin    = "<!-- BEGIN ROUTES: 'UPDATE=1 go test -run Access ./httpapi' writes them -->\n"
	accessEnd      = "<!-- END ROUTES -->\n"
)

// accessCallers are the columns of docs/access.md, with the request of each.
func accessCallers(t *testing.T) []accessCaller {
	admin := func(change map[string]any) func(*http.Request) {
		return claiming(change)
	}
	client := byClient
	return []accessCaller{
		{"no token", anonymous},
		{"expired", admin(map[string]any{"exp": now.Add(-time.Hour).Unix()})},
		{"another role", admin(map[string]any{"role": "driver"})},
		{"client", client},
		{"client, unsigned", both(client, withoutSignature)},
		{"client, signed by another agency", both(client, signedBy(ofOtherApp))},
		{"admin", admin(map[string]any{"agency_id": 1, "scope": nil})},
		{"viewer", admin(map[string]any{"role": "viewer", "agency_id": 1, "scope": "halt agency_keys"})},
		{"operator", admin(map[string]any{"role": []string{"operator", "viewer"}, "agency_id": 1, "scope": "halt agency_keys"})},
		{"admin of another agency", admin(map[string]any{"agency_id": 2, "scope": nil})},
		{"admin, `halt`", admin(map[string]any{"agency_id": 1, "scope": "halt"})},
		{"admin, `agency_keys`", admin(map[string]any{"agency_id": 1, "scope": "agency_keys"})},
		{"admin, `all_agencies`", admin(nil)},
	}
}

type accessCaller struct {
	name string
	as   func(*http.Request)
}

func both(first, second func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) { first(r); second(r) }
}

// access returns for each route of the contract what each caller gets: the status that refuses it,
// or "yes". Vehicle 42, booking 42 and client-1 belong to agency 1.
func access(t *testing.T) map[string][]string {
	matrix := map[string][]string{}
	names := strings.NewReplacer(
		"{vehicle}", "42", "{booking}", "42", "{agency}", "1", "{area}", "centre", "{key}", "ak_1", "{station}", "1", "{id}",
		"0b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9",
		"{transition}", "0b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9", "/halts", "/halts?agency_id=1", "/units/keys", "/units/keys?key=k1",
	)
	for path, item := range document().Paths.Map() {
		if path == hook {
			continue // called by the payment processor, with its signature
		}
		for method := range item.Operations() {
			route := method + " " + path
			b := newBookingAPI(t, func(c *httpapi.Config) {
				c.Feed.End() // else a stream of events lasts until its caller ends it
				c.Wallet = wallet.New(wallet.Config{Cards: rentaltest.NewCards(), Processor: rentaltest.NewBank(t), Now: c.Now, Log: c.Log})
			})
			b.controller.send = func(_ context.Context, o delivery.Order) (telematics.Command, error) {
				if !o.Actor.Sees(1) { // as the broker does
					return telematics.Command{}, telematics.NoSuchVehicle(o.Vehicle)
				}
				return settled(o, telematics.Succeeded), nil
			}
			for _, caller := range accessCallers(t) {
				entries := len(b.history.all())
				r := b.do(method, names.Replace(path), validRequest(item.GetOperation(method)), caller.as)
				// No entry of one without a role; the broker adds those of commands.
				logged := method != http.MethodGet && caller.name != "another role" && !strings.Contains(path, "{vehicle}/control/")
				if logged && (r.status == 403 || r.status == 404) && len(b.history.all()) == entries {
					t.Errorf("%s, %s: %d adds no entry to the audit log", route, caller.name, r.status)
				}
				cell := "yes"
				if r.status == 401 || r.status == 403 || r.status == 404 && caller.name == "admin of another agency" {
					cell = fmt.Sprint(r.status)
				}
				if code := r.body.Error; r.status == 401 && !strings.Contains("unauthenticated agency_signature_missing", code.Code) ||
					r.status == 403 && !strings.Contains("forbidden agency_mismatch", code.Code) {
					t.Errorf("%s, %s: %d %s", route, caller.name, r.status, code.Code)
				}
				if r.status == http.StatusInternalServerError {
					t.Errorf("%s, %s: %s", route, caller.name, r.text)
				}
				matrix[route] = append(matrix[route], cell)
			}
		}
	}
	return matrix
}

// validRequest adds the query and body that the operation requires, from the examples in the
// contract.
func validRequest(operation *openapi3.Operation) func(*http.Request) {
	return func(r *http.Request) {
		for _, p := range operation.Parameters {
			if p.Value.In == openapi3.ParameterInQuery && p.Value.Required && p.Value.Example != nil {
				query := r.URL.Query()
				query.Set(p.Value.Name, fmt.Sprint(p.Value.Example))
				r.URL.RawQuery = query.Encode()
			}
		}
		if r.Method != http.MethodGet {
			r.Header.Set("Idempotency-Key", "access-1")
		}
		if operation.RequestBody != nil {
			withJSON(string(must(json.Marshal(operation.RequestBody.Value.Content.Get("application/json").Example))))(r)
		}
	}
}

func TestAccess(t *testing.T) {
	matrix := access(t)
	t.Run("is as documented", func(t *testing.T) { compareAccess(t, matrix) })
	t.Run("follows the contract", func(t *testing.T) { ruleAccess(t, matrix) })
}

// compareAccess compares the page: a row for each kind of route, and the routes of each kind. It
// does not list the routes of clients, nor the largest kinds of reads and of changes: ruleAccess
// has rules for them.
func compareAccess(t *testing.T, matrix map[string][]string) {
	callers := accessCallers(t)
	column := func(name string) int {
		return slices.IndexFunc(callers, func(c accessCaller) bool { return c.name == name })
	}
	kinds := map[string][]string{}
	for _, route := range slices.SortedFunc(maps.Keys(matrix), func(a, b string) int {
		_, pathA, _ := strings.Cut(a, " ")
		_, pathB, _ := strings.Cut(b, " ")
		return strings.Compare(pathA+a, pathB+b)
	}) {
		cells := slices.Clone(matrix[route])
		if cells[column("admin")] == "yes" {
			cells[column("admin of another agency")] = "own"
		}
		row := strings.Join(cells, " | ")
		kinds[row] = append(kinds[row], "`"+strings.Replace(route, "/api/v1", "", 1)+"`")
	}
	var table, routes strings.Builder
	table.WriteString("| |")
	for _, caller := range callers {
		fmt.Fprintf(&table, " %s |", caller.name)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(callers)) + "\n")
	named := map[string]bool{}
	for n, row := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(len(kinds[b])-len(kinds[a]), strings.Compare(a, b))
	}) {
		fmt.Fprintf(&table, "| %d | %s |\n", n+1, row)
		listed := strings.Join(kinds[row], ", ")
		rest := "every change below `/admin` that is not named here"
		if strings.Contains(listed, "`GET /admin/") {
			rest = "every `GET` below `/admin` that is not named here"
		} else if strings.Contains(listed, " /client/") {
			rest = "every route below `/client`"
		}
		if !named[rest] {
			listed, named[rest] = rest, true
		}
		routes.WriteString(wrapped(fmt.Sprintf("%d. %s", n+1, listed)))
	}
	table.WriteString("\n" + routes.String())
	text := must(os.ReadFile(accessDocument))
	before, rest, begins := strings.Cut(string(text), accessBegin)
	written, after, ends := strings.Cut(rest, accessEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the markers of the routes", accessDocument)
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(accessDocument, []byte(before+accessBegin+table.String()+accessEnd+after), 0o644))
	} else if written != table.String() {
		t.Errorf("%s differs from what the API does; UPDATE=1 go test -run Access ./httpapi writes it:", accessDocument)
		reportMissing(t, "-", written, table.String())
		reportMissing(t, "+", table.String(), written)
	}
}

// wrapped returns an item of a numbered list in lines of at most 100 columns.
func wrapped(text string) string {
	var lines strings.Builder
	column := 0
	for part := range strings.SplitSeq(text, ", ") {
		switch {
		case column == 0:
		case column+len(part)+3 > 100:
			lines.WriteString(",\n   ")
			column = 3
		default:
			lines.WriteString(", ")
			column += 2
		}
		lines.WriteString(part)
		column += len(part)
	}
	return lines.String() + "\n"
}

// reportMissing reports the lines of a text that another one lacks.
func reportMissing(t *testing.T, sign, text, from string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.Contains(from, line) {
			t.Errorf("%s%s", sign, strings.TrimSpace(line))
		}
	}
}

// ruleAccess checks rules that do not depend on the document, which UPDATE=1 would set to anything.
func ruleAccess(t *testing.T, matrix map[string][]string) {
	callers := accessCallers(t)
	for route, cells := range matrix {
		method, path, _ := strings.Cut(route, " ")
		operation := document().Paths.Value(path).GetOperation(method)
		clients := operation.Security != nil
		got := map[string]string{}
		for i, caller := range callers {
			got[caller.name] = cells[i]
		}
		want := map[string]string{"no token": "401", "expired": "401", "another role": "403"}
		if clients {
			for _, caller := range callers[6:] {
				want[caller.name] = "403"
			}
			want["client"], want["client, unsigned"], want["client, signed by another agency"] = "yes", "401", "403"
			if !strings.HasPrefix(path, "/api/v1/client/") {
				t.Errorf("%s requires the app's signature, but is not below /api/v1/client/", route)
			}
		} else {
			want["client"], want["client, unsigned"], want["client, signed by another agency"] = "403", "403", "403"
			if scope, needs := neededScope(method, path); needs {
				want["admin"] = "403"
				want["admin, `halt`"], want["admin, `agency_keys`"] = "403", "403"
				want["admin, `"+scope+"`"] = "yes"
			}
			if method != http.MethodGet {
				want["viewer"] = "403"
			}
			if method != http.MethodGet && !forOperators(path) {
				want["operator"] = "403"
			}
		}
		if strings.Contains(path, "{") && !clients && got["admin of another agency"] == "yes" {
			t.Errorf("%s: an administrator of another agency has access", route)
		}
		for caller, cell := range want {
			same(t, got[caller], cell, "%s, %s", route, caller)
		}
	}
}

// forOperators reports whether operators make the changes of a route: commands, bookings without
// money, notes, and who has seen an alert.
func forOperators(path string) bool {
	for _, part := range []string{"/fees", "/refund", "/capture"} {
		if strings.Contains(path, part) {
			return false
		}
	}
	for _, part := range []string{"/control/", "/admin/commands", "/admin/bookings", "/notes", "/acknowledge"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// neededScope returns the scope that a route requires of an administrator.
func neededScope(method, path string) (string, bool) {
	switch {
	case strings.HasSuffix(path, "/halts") && method != http.MethodGet:
		return "halt", true
	case strings.Contains(path, "/agencies/{agency}/keys"):
		return "agency_keys", true
	case strings.Contains(path, "/admin/units/"):
		return "all_agencies", true
	}
	return "", false
}
