package mosquitto

import (
	"testing"

	"motorpool/internal/assert"
)

func TestUnitPassword_IsDerivedFromSecretAndSerial(t *testing.T) {
	// The password is the HMAC-SHA256 of "sim-1" under "a secret" in base64url, as other tools
	// compute it.
	const want = "XmNPg01B26o2rP0i9vnM4a61"
	assert.Equal(t, UnitPassword("a secret", "sim-1"), want, "the password")
	if UnitPassword("a secret", "sim-2") == want || UnitPassword("another secret", "sim-1") == want {
		t.Error("two units or two installations have the same password")
	}
}
