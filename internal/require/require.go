// Package require ends a test that cannot continue.
package require

// TB is what it needs of *testing.T, *testing.B and *rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test with the error unless it is nil.
func NoError(t TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
