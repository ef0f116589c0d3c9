package require

// LateAttribute is an attribute of a test that failed because it waited in vain, and not before.
const LateAttribute = "late"

// Late ends a test that has waited in vain. On a busy machine that says little: "make test"
// repeats tests alone that failed in no other way. What the test logged before does not matter.
func Late(t interface {
	Helper()
	Failed() bool
	Attr(key, value string)
	Fatalf(format string, args ...any)
}, format string, args ...any) {
	t.Helper()
	if !t.Failed() {
		t.Attr(LateAttribute, "true")
	}
	t.Fatalf(format, args...)
}
