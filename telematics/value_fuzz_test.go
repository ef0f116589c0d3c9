package telematics

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"motorpool/internal/require"
)

func FuzzParseValue(f *testing.F) {
	known := Fields
	for i := range known {
		for _, raw := range []string{
			`null`, ` 1 `, `-0`, `1e400`, `true`, `"on"`, `"\u006fn"`, `"2026-01-02T10:00:00Z"`, `["P0420"]`, `{"a":[1]}`,
			`{"a":9007199254740993}`,
		} {
			f.Add(i, []byte(raw))
		}
	}
	f.Fuzz(func(t *testing.T, i int, raw []byte) {
		field := known[uint(i)%uint(len(known))]
		value, err := ParseValue(field, raw)
		if err != nil {
			return
		}
		var want, got any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%s: %s is not JSON, but is parsed as %#v", field, raw, value)
		}
		text, err := json.Marshal(value)
		require.NoError(t, err, "%s", field)
		if again, err := ParseValue(field, text); err != nil || !reflect.DeepEqual(again, value) {
			t.Errorf("%s: %s is parsed again as %#v, want %#v, %v", field, text, again, value, err)
		}
		if _, ok := value.(time.Time); ok {
			return // encoded in UTC with milliseconds
		}
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is parsed as %s, want %v", field, raw, text, want)
		}
	})
}
