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

// NoError reports an error. The words, a format with its arguments, say of what; none: the error
// says so itself.
func NoError(t TB, err error, words ...any) {
	if err != nil {
		t.Helper()
		t.Errorf("%v", Of(err, words))
	}
}

// Of returns an error after a format with its arguments, if there are any.
func Of(err error, words []any) error {
	if len(words) == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(words[0].(string), words[1:]...), err)
}

func report(t TB, got, want any, words string, args []any) {
	t.Helper()
	t.Errorf("%s: %+v, want %+v", fmt.Sprintf(words, args...), got, want)
}
