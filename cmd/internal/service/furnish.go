package service

import (
	"context"

	"motorpool/store"
)

// Furnish brings a database's schema up to date, and puts a fleet on record.
func Furnish(ctx context.Context, databaseURL string, fleet store.FleetFile) error {
	postgres, err := store.New(store.Config{URL: databaseURL})
	if err != nil {
		return err
	}
	defer postgres.Close()
	if _, err := postgres.Migrate(ctx); err != nil {
		return err
	}
	_, err = postgres.Import(ctx, fleet)
	return err
}
