package pages

import (
	"regexp"
	"testing"

	"motorpool/httpapi/signin"
	"motorpool/internal/require"
	"motorpool/operators"
)

// A person can type immediately, without a script.
func TestPages_TheFirstEmptyFieldHasTheFocus(t *testing.T) {
	for value, focused := range map[string]string{"": "name", "anna": "password"} {
		page := Page{Action: "/x", Fields: []Field{
			{Name: "code", Type: "hidden"}, {Name: "name", Value: value}, {Name: "password"}, {Name: "again"},
		}}
		_, body, err := page.Render("")
		require.NoError(t, err)
		found := regexp.MustCompile(`name="(\w+)"[^>]* autofocus`).FindAllStringSubmatch(string(body), -1)
		if len(found) != 1 || found[0][1] != focused {
			t.Errorf("with the name %q the focus is on %q, want %s", value, found, focused)
		}
	}
}

func TestPages_EverySentenceHasItsGerman(t *testing.T) {
	for _, text := range []string{
		signin.NotRight, signin.LinkUsed, signin.NotTheSame, signin.ManyTries, signin.OtherSite, signin.NoOperators,
		operators.TooShort, operators.TooLong, operators.HasName, signin.ServerNeeded,
	} {
		if german[text] == "" {
			t.Errorf("no German for %q", text)
		}
	}
}
