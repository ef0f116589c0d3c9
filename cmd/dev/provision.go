package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"motorpool/cmd/internal/keyfile"
	"motorpool/simulator"
	"motorpool/telematics"
)

// provisionEvery is shorter than the service takes to notice a key that was activated: the
// cars should know it by then.
const provisionEvery = 200 * time.Millisecond

// provision gives the public halves of the signing keys to the cars, and to a developer's
// units, when the keys are rotated. In the field this is the operator's task.
func (w *world) provision(ctx context.Context, cars *simulator.Fleet) error {
	file := filepath.Join(w.Dir, signingFile)
	keys := keyfile.Source[telematics.Keychain]{
		Name: file, Every: provisionEvery, Parse: telematics.ParseKeychain, Log: w.log,
		Read: func(context.Context) ([]byte, error) { return os.ReadFile(file) },
	}
	return keys.Watch(ctx, func(chain telematics.Keychain) { // the first time, too: they may have changed since the start
		cars.SetKeyring(chain.Keyring())
		if err := publish(filepath.Join(w.Dir, keyringFile), chain); err != nil {
			w.log.Error("public keys not written", "file", keyringFile, "err", err)
		}
	})
}
