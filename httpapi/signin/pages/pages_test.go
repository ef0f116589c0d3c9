package pages

import (
	"testing"

	"motorpool/httpapi/signin"
	"motorpool/operators"
)

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
