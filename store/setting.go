package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"motorpool/store/unavailable"
)

const sharedGroupSetting = "mqtt_shared_group"

// SharedGroup returns the name of the service's shared subscriptions, a secret that
// all instances of an installation have in common [TOP-3]. Whoever asks first makes it.
func (p *Postgres) SharedGroup(ctx context.Context) (string, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", unavailable.Wrap("make the name of the shared group", err)
	}
	name, err := p.setting(ctx, sharedGroupSetting, "motorpool-"+hex.EncodeToString(random))
	return name, unavailable.Wrap("read the name of the shared group", err)
}

// setting returns the value of a setting, which is proposed where there is none yet.
func (p *Postgres) setting(ctx context.Context, name, proposed string) (string, error) {
	_, err := p.Pool.ExecContext(ctx, `insert into settings (name, value) values ($1, $2) on conflict (name) do nothing`,
		name, proposed)
	if err != nil {
		return "", err
	}
	var value string
	err = p.Pool.GetContext(ctx, &value, `select value from settings where name = $1`, name)
	return value, err
}
