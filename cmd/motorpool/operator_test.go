package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/operators"
	accounts "motorpool/store/operators"
)

func TestOperator_IsAddedListedResetAndRemoved(t *testing.T) {
	postgres, address := recorded(t)
	store := accounts.Store{DB: postgres}
	t.Setenv("MOTORPOOL_DATABASE_URL", address)
	t.Setenv("MOTORPOOL_CONSOLE_URL", "https://fleet.example.com/motorpool")
	owner := func(link string) string {
		t.Helper()
		rest, ok := strings.CutPrefix(link, "https://fleet.example.com/motorpool/auth/password?code=")
		code, err := url.QueryUnescape(rest)
		digest, valid := operators.Digest(code)
		if !ok || err != nil || !valid {
			t.Fatalf("printed %q, want a link", link)
		}
		o, _, err := store.ByLink(t.Context(), digest)
		require.NoError(t, err)
		return o.Name
	}

	link, said, err := runTool(t, "operator", "add", "Anna", "--role", "admin", "--scope", "all_agencies halt")
	if err != nil || owner(link) != "anna" || !inOrder(said, "anna", "once, until", "motorpool operator password anna") {
		t.Fatalf("add: %q %q %v", link, said, err)
	}
	fromStdin(t, "correct horse battery\n")
	tool(t, "operator", "add", "ben", "--role", "viewer", "--agency", "2", "--password-stdin").printsOnly("").says("ben can sign in")
	ben, _, err := store.ByName(t.Context(), "ben")
	if err != nil || ben.Agency != 2 || !operators.VerifyPassword(ben.Password, "correct horse battery") {
		t.Errorf("ben is %+v, %v", ben, err)
	}
	table, err := output(t, "operator", "list", "--output", "table")
	if err != nil || !lineHas(table, "anna", "invited") || !lineHas(table, "ben", "active") || strings.Contains(table, "argon2id") {
		t.Errorf("list: %s %v", table, err)
	}
	text, err := output(t, "operator", "list", "--output", "json")
	var list []struct{ Name string }
	if err != nil || json.Unmarshal([]byte(text), &list) != nil || len(list) != 2 {
		t.Errorf("list as JSON: %s %v", text, err)
	}

	again, _, err := runTool(t, "operator", "password", "ben")
	if err != nil || owner(again) != "ben" {
		t.Errorf("password: %q %v", again, err)
	}
	if _, lives, err := store.OfSession(t.Context(), ben.ID, ben.Epoch); lives || err != nil {
		t.Errorf("his sessions go on: %v, %v", lives, err)
	}
	tool(t, "operator", "remove", "ben").prints("ben is removed")
	assert.Equal(t, owner(again), "", "the owner of the link of an operator who is removed")

	for args, want := range map[string]string{
		"add anna --role admin --agency 1":                  "motorpool operator password anna",
		"add eve --role admin":                              "all_agencies",
		"add eve --role admin --agency 99":                  "no agency 99",
		"add eve --role admin --agency 0":                   "--agency",
		"add eve --role root --agency 1":                    "--role",
		"add e! --role admin --agency 1":                    "lower-case",
		"add eve --role viewer --scope hallt":               "hallt",
		"password eve":                                      "operator list",
		"remove eve":                                        "operator list",
		"password anna --console-url fleet":                 "--console-url",
		"add eve --role viewer --agency 1 --password-stdin": operators.TooShort,
	} {
		fromStdin(t, "short\n")
		tool(t, append([]string{"operator"}, strings.Fields(args)...)...).fails(want)
	}
}
