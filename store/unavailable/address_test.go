package unavailable

import (
	"strings"
	"testing"
)

func TestRedactURL_HidesEveryPassword(t *testing.T) {
	for address, want := range map[string]string{
		"redis://u:hidden@a:6379/0":                              "redis://u:xxxxx@a:6379/0",
		"redis://u:hidden@a:26379?master_name=m&password=hidden": "redis://u:xxxxx@a:26379?master_name=m&password=xxxxx",
		"postgres://u@a:5432,b:5432/db?sslmode=disable&sslpassword=hidden": "" +
			"postgres://u@a:5432,b:5432/db?sslmode=disable&sslpassword=xxxxx",
		"redis://a:6379?addr=b:6379":         "redis://a:6379?addr=b:6379",
		"redis://a:6379?password=hidden;x":   "(unreadable)",
		"redis://a:6379/%zz?password=hidden": "(unreadable)",
	} {
		if got := RedactURL(address); got != want || strings.Contains(got, "hidden") {
			t.Errorf("%s is redacted as %s, want %s", address, got, want)
		}
	}
}
