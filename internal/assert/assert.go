// Package assert reports values that are not as wanted; the test goes on.
package assert

import (
	"fmt"
	"reflect"
	"slices"
)

// TB is what it needs of *testing.T, *testing.B and *rapid.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal compares by ==. The words, with their arguments, say what the value is.
func Equal[T comparable](t TB, got, want T, words string, args ...any) {
	if got != want {
		t.Helper()
		report(t, got, want, words, args)
	}
}

// EqualSlices compares the elements by ==; a nil slice is equal to an empty one.
func EqualSlices[T comparable](t TB, got, want []T, words string, args ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		report(t, got, want, words, args)
	}
}

// DeepEqual compares by [reflect.DeepEqual].
func DeepEqual[T any](t TB, got, want T, words string, args ...any) {
	if !reflect.DeepEqual(got, want) {
		t.Helper()
		report(t, got, want, words, args)
	}
}

// NoError reports an error. The words, with their arguments, say of what.
func NoError(t TB, err error, words string, args ...any) {
	if err != nil {
		t.Helper()
		t.Errorf("%s: %v", fmt.Sprintf(words, args...), err)
	}
}

func report(t TB, got, want any, words string, args []any) {
	t.Helper()
	t.Errorf("%s: %+v, want %+v", fmt.Sprintf(words, args...), got, want)
}
