package main

import (
	"context"
	"os"
	"time"

	"motorpool/cmd/internal/keyfile"
	"motorpool/cmd/internal/world"
	"motorpool/simulator"
	"motorpool/telematics"
)

// provisionEvery is shorter than the service takes to notice an activated key, so that the
// cars have it by then.
const provisionEvery = 200 * time.Millisecond

// provision gives the public halves of the signing keys to the cars, and writes them for other units, when the keys are
// rotated. In production this is the operator's task.
func (e *environment) provision(ctx context.Context, cars *simulator.Fleet) error {
	file := e.Path(world.SigningFile)
	keys := keyfile.Source[telematics.Keychain]{
		Name: file, Every: provisionEvery, Parse: telematics.ParseKeychain, Log: e.log,
		Read: func(context.Context) ([]byte, error) { return os.ReadFile(file) },
	}
	return keys.Watch(ctx, func(chain telematics.Keychain) { // also the first time: they may have changed since the start
		cars.SetKeyring(chain.Keyring())
		if err := world.WriteKeyring(e.Path(world.KeyringFile), chain); err != nil {
			e.log.Error("public keys not written", "file", world.KeyringFile, "err", err)
		}
	})
}
