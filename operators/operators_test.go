package operators

import (
	"strings"
	"testing"

	"motorpool/internal/assert"
)

func TestPassword_IsVerifiedByItsHash(t *testing.T) {
	hash := HashPassword("Grüße an alle Wagen")
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") || hash == HashPassword("Grüße an alle Wagen") {
		t.Errorf("hash %s", hash)
	}
	for password, want := range map[string]bool{
		"Grüße an alle Wagen":       true,
		"Gru\u0308ße an alle Wagen": true, // as another keyboard writes it
		"Grüße an alle wagen":       false,
		"":                          false,
	} {
		if VerifyPassword(hash, password) != want {
			t.Errorf("%q: want %v", password, want)
		}
	}
	for _, hash := range []string{
		"", "x", Unmatched, "$argon2i$v=19$m=64,t=2,p=1$AAAA$AAAA", "$argon2id$v=19$m=0,t=0,p=0$AAAA$AAAA",
		"$argon2id$v=16$m=64,t=1,p=1$AAAA$AAAA", strings.Replace(hash, "p=1", "p=999", 1),
	} {
		if VerifyPassword(hash, "") {
			t.Errorf("%q verifies no password", hash)
		}
	}
	if VerifyPassword(HashPassword(strings.Repeat("a", MaxPassword+1)), strings.Repeat("a", MaxPassword+1)) {
		t.Error("a password of any length is hashed")
	}
}

func TestCheckPassword(t *testing.T) {
	for password, want := range map[string]string{
		"correct horse":                   "",
		"öööööööööööö":                    "",
		"short":                           TooShort,
		"my name is Anna":                 HasName,
		strings.Repeat("a ", MaxPassword): TooLong,
		"correct horse \xff":              TooLong,
	} {
		assert.Equal(t, CheckPassword("anna", password), want, "%q", password)
	}
}

func TestParseName(t *testing.T) {
	for typed, want := range map[string]string{
		"anna": "anna", " Anna@Example.com ": "anna@example.com", "": "", "a b": "", "-a": "", "ä": "", strings.Repeat("a", 65): "",
	} {
		if name, ok := ParseName(typed); ok != (want != "") || ok && name != want {
			t.Errorf("%q: %q, %v", typed, name, ok)
		}
	}
}

func TestOperator_NeedsAnAgencyOrTheScope(t *testing.T) {
	known := []string{"all_agencies", "halt"}
	for _, c := range []struct {
		o    Operator
		want string
	}{
		{Operator{Name: "anna", Agency: 1}, ""},
		{Operator{Name: "anna", Scopes: []string{"all_agencies"}}, ""},
		{Operator{Name: "anna"}, "all_agencies"},
		{Operator{Name: "anna", Agency: 1, Scopes: []string{"hallt"}}, `"hallt"`},
		{Operator{Name: "Anna", Agency: 1}, "lower-case"},
	} {
		err := c.o.Check("all_agencies", known)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

func TestDigest_OfACodeAlone(t *testing.T) {
	code, digest := NewCode()
	if got, ok := Digest(code); !ok || string(got) != string(digest) || strings.Contains(code, string(digest)) {
		t.Errorf("Digest(%q) = %x, %v", code, got, ok)
	}
	for _, code := range []string{"", "x", code[1:], code + "A"} {
		if _, ok := Digest(code); ok {
			t.Errorf("%q is a code", code)
		}
	}
}
