// Package settings stores settings that all instances of an installation share, in Postgres.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package settings

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

const (
	sharedGroup  = "mqtt_shared_group"
	installation = "installation"
)

// Installation returns the id of the installation: 32 hexadecimal digits, not a secret. The first
// call draws it. A copy of the database has the same.
func Installation(ctx context.Context, db *pg.DB) (string, error) {
	id, err := value(ctx, db, installation, random())
	return id, unavailable.Wrap("read the id of the installation", err)
}

// SharedGroup returns the name of the service's shared subscriptions, a secret that all instances
// share [TOP-3]. The first call creates it. The instances' messages about the newest primary are
// signed with it.
func SharedGroup(ctx context.Context, db *pg.DB) (string, error) {
	name, err := value(ctx, db, sharedGroup, "motorpool-"+random())
	if err == nil {
		db.Signs(name)
	}
	return name, unavailable.Wrap("read the name of the shared group", err)
}

// value returns a setting, which never changes and is read once. Where there is none yet, it stores
// the proposed one.
func value(ctx context.Context, db *pg.DB, name, proposed string) (string, error) {
	return pg.Constant(db, name, func() (v string, err error) {
		if err = db.Exec(ctx, `insert into settings (name, value) values ($1, $2)
			on conflict (name) do nothing`, name, proposed); err == nil {
			err = db.Pool.GetContext(ctx, &v, `select value from settings where name = $1`, name)
		}
		return v, err
	})
}

func random() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	return hex.EncodeToString(random)
}
