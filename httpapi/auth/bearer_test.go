package auth

import (
	"errors"
	"strings"
	"testing"
)

func FuzzBearer(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer a.b.c", "bearer  a.b.c ", "Basic a.b.c", "Bearer a.b.c\x00", "Bearer a.b.c.d",
		"Bearer é.b.c", "Bearer " + strings.Repeat("a", 9000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, err := bearer([]string{header})
		if err != nil {
			if got := Challenge(err); !strings.HasPrefix(got, `Bearer realm="motorpool"`) ||
				errors.Is(err, errNoToken) == strings.Contains(got, "error=") {
				t.Errorf("header %q: challenge %q", header, got)
			}
			return
		}
		if len(token) > maxToken || strings.Count(token, ".") != 2 || strings.ContainsFunc(token, notInJWT) ||
			!strings.Contains(header, token) {
			t.Errorf("header %q: read as the token %q", header, token)
		}
	})
}
