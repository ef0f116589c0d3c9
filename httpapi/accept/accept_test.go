package accept

import (
	"net/http"
	"testing"

	"motorpool/internal/assert"
)

func TestGzip(t *testing.T) {
	for _, c := range []struct {
		headers []string
		want    bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"identity"}, false},
		{[]string{"br"}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZIP"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"br;q=1, gzip;q=0.8"}, true},
		{[]string{"br", "gzip"}, true},
		{[]string{"gzip ; Q=0.001"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip;q=0.0"}, false},
		{[]string{"gzip; q=0.000"}, false},
		{[]string{"gzip;q=none"}, false},
		{[]string{"*"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"*, gzip;q=0"}, false}, // gzip by its name counts before *, in any position
		{[]string{"*;q=0, gzip"}, true},
		{[]string{"gzip2"}, false},
	} {
		assert.Equal(t, Gzip(http.Header{"Accept-Encoding": c.headers}), c.want, "%q: Gzip", c.headers)
	}
}
