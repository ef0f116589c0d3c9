package mosquitto

import "testing"

func TestAUnitsPasswordIsDerivedFromTheSecretAndItsSerial(t *testing.T) {
	// HMAC-SHA256 of "sim-1" under "a secret", base64url, as any other tool computes it.
	const want = "XmNPg01B26o2rP0i9vnM4a61"
	if got := UnitPassword("a secret", "sim-1"); got != want {
		t.Errorf("password %q, want %q", got, want)
	}
	if UnitPassword("a secret", "sim-2") == want || UnitPassword("another secret", "sim-1") == want {
		t.Error("not every unit and installation has its own")
	}
}
