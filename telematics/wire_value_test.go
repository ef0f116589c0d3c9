package telematics

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

// What is built by hand must be what json.Marshal makes of nested maps.
func TestNestedValuesAreAsJSONHasThem(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for _, values := range []map[string]any{
		{},
		{"a": 1.0},
		{"a.b": true, "a.c": nil},
		{"a.b.c": 1e21, "a.b.d": 1e-7, "a.e": 0.1, "f": math.Copysign(0, -1), "g.h.i": 123456.789},
		{"a": 1e15, "b": math.Nextafter(1e15, 0), "c": 1e-6, "d": math.Nextafter(1e-6, 0), "e": 999999999999999.9, "f": -1e15},
		{"a": "plain", "b.c": "not \"plain\" <&> \n zwölf", "b.d": ""},
		{"a.at": at, "a_b": 1.0, "b": []string{"x", "y"}, "c.d": map[string]any{"e": []any{nil}}},
	} {
		tree := map[string]any{}
		for path, value := range values {
			if at, ok := value.(time.Time); ok {
				value = FormatTime(at)
			}
			node, names := tree, strings.Split(path, ".")
			for _, name := range names[:len(names)-1] {
				if node[name] == nil {
					node[name] = map[string]any{}
				}
				node = node[name].(map[string]any)
			}
			node[names[len(names)-1]] = value
		}
		want, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var list []pathValue
		for path, value := range values {
			list = append(list, pathValue{path, value})
		}
		if got := nested(list); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestInstantsAreWrittenWithMilliseconds(t *testing.T) {
	for _, at := range []time.Time{
		{},
		time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 22, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.FixedZone("east", 5*3600)),
		time.Date(1969, 12, 31, 23, 59, 59, 70_900_000, time.UTC),
		time.Date(12026, 1, 2, 3, 4, 5, 120_000_000, time.UTC),
	} {
		if got, want := string(AppendTime([]byte("at "), at)), at.UTC().Format("at 2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
