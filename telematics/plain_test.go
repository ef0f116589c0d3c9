package telematics

import (
	"testing"

	"motorpool/internal/assert"
)

func TestPlain_SpellingsOfOnePlateAreEqual(t *testing.T) {
	for _, spelling := range []string{
		"M-Ü 777", "m-ü 777", "mü777", "M\u2011Ü\u00A0777", "M-U\u0308 777", " M \u2013 Ü777\t", "\uFF2DÜ777",
	} {
		assert.Equal(t, Plain(spelling), "mu\u0308777", "Plain(%q)", spelling)
	}
	for _, other := range []string{"M-U 777", "M-Ü 77", "M-Ü 7777"} {
		if Plain(other) == Plain("M-Ü 777") {
			t.Errorf("%q is the same as M-Ü 777", other)
		}
	}
}
