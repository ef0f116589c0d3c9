package signing

import (
	"crypto/ed25519"
	"testing"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

var benchKey = Key{ID: "fleet-1", Private: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}

// benchClaims are the claims of a command without parameters and trace, and of one with all
// members.
var benchClaims = []struct {
	name   string
	claims telematics.Claims
}{{"lock", goldenLock}, {"attention", goldenAttention}}

func BenchmarkSign(b *testing.B) {
	for _, c := range benchClaims {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := benchKey.Sign(c.claims); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// The cost of the signature alone, which the others include.
	b.Run("signature", func(b *testing.B) {
		message, err := benchKey.Sign(goldenLock)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			ed25519.Sign(benchKey.Private, message)
		}
	})
}

// BenchmarkVerify measures the unit's side.
func BenchmarkVerify(b *testing.B) {
	ring := benchKey.Keyring()
	for _, c := range benchClaims {
		b.Run(c.name, func(b *testing.B) {
			message, err := benchKey.Sign(c.claims)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ring.Verify(message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("signature", func(b *testing.B) {
		message := []byte("of any length that a command has")
		signature := ed25519.Sign(benchKey.Private, message)
		public := ring[benchKey.ID]
		b.ReportAllocs()
		for b.Loop() {
			if !ed25519.Verify(public, message, signature) {
				b.Fatal("the signature was not verified")
			}
		}
	})
}

// BenchmarkEncode measures a command from its record to the message.
func BenchmarkEncode(b *testing.B) {
	c := telematics.Command{
		ID: aCommand, Vehicle: 42, Agency: 1, Unit: goldenUnit, Action: telematics.Lock, Lane: telematics.AccessLane, Seq: 42,
		State: telematics.Accepted, Requested: now, Deadline: now.Add(10 * time.Second),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dialects.Spoken.Encode(&c, benchKey); err != nil {
			b.Fatal(err)
		}
	}
}
