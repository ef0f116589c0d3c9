// Package require ends a test that cannot continue.
package require

import "motorpool/internal/assert"

// TB is what it needs of *testing.T, *testing.B and *rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test with the error unless it is nil, and says of what as [assert.NoError] does.
func NoError(t TB, err error, words ...any) {
	if err != nil {
		t.Helper()
		t.Fatal(assert.Of(err, words))
	}
}
