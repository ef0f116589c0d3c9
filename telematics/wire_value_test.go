package telematics

import (
	"testing"
)

func TestNested_PathsBecomeObjects(t *testing.T) {
	for want, values := range map[string]map[string]any{
		`{}`:                        {},
		`{"a":1}`:                   {"a": 1.0},
		`{"a":{"b":true,"c":null}}`: {"a.b": true, "a.c": nil},
		`{"a":{"b":{"c":1e+21,"d":1e-7},"e":0.1},"f":[]}`:         {"a.b.c": 1e21, "a.b.d": 1e-7, "a.e": 0.1, "f": []string{}},
		`{"a":{"at":"x"},"a_b":1,"c":{"d":{"e":[null]}}}`:         {"a.at": "x", "a_b": 1.0, "c.d": map[string]any{"e": []any{nil}}},
		`{"b":{"c":"not \"plain\" \u003c\u0026\u003e \n zwölf"}}`: {"b.c": "not \"plain\" <&> \n zwölf"},
	} {
		if got := nested(values); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
