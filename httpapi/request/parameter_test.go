package request

import (
	"encoding/json"
	"testing"
)

func TestWholeNumber_IsTheOneThatWasSent(t *testing.T) {
	for text, want := range map[json.Number]int64{
		"42": 42, "42.0": 42, "-1e2": -100, "9007199254740993": 9007199254740993, "9007199254740991.0": 9007199254740991,
		"9007199254740992.9": 0, "9007199254740993.0": 0, "1e400": 0,
	} {
		if n := WholeNumber(text); n != want {
			t.Errorf("%s is read as %d, want %d", text, n, want)
		}
	}
}
