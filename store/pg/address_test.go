package pg

import (
	"strings"
	"testing"
)

func TestSeveralHosts(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:p@a:5432/db?sslmode=disable": "postgres://u:p@a:5432/db?sslmode=disable",
		"postgres://u@a,b/db?port=1,2":             "postgres://u@a,b/db?port=1,2",
		"postgres://u@a:1,b:2/db":                  "postgres://u@a,b/db?port=1%2C2",
		"postgres://a:1,b/db?sslmode=disable":      "postgres://a,b/db?port=1%2C5432&sslmode=disable",
		"postgres://u:p,@a:1,b:2":                  "postgres://u:p,@a,b?port=1%2C2",
		"postgres:///db?host=/run/postgresql":      "postgres:///db?host=/run/postgresql",
	} {
		if got, err := severalHosts(address); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", address, got, err, want)
		}
	}
	for _, address := range []string{"postgres://u:hush@a:1,:2/db", "postgres://a:1,[::1]:2/db", "postgres://a:1,b:2/db?port=3,4"} {
		if p, err := New(Config{URL: address}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, %v; want an error without the password", address, p, err)
		}
	}
}
