package devstack_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/redis/go-redis/v9"

	"motorpool/internal/require"
	"motorpool/mosquitto"
)

// ask connects a new client and makes one request to the server at a URL.
func ask(address string, within time.Duration) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	switch u.Scheme {
	case "postgres":
		return askPostgres(ctx, address)
	case "redis":
		return askRedis(ctx, address)
	default:
		return askMQTT(within, address)
	}
}

func askPostgres(ctx context.Context, address string) error {
	// Before the greeting of the server the driver obeys this timeout, not the context.
	db, err := sql.Open("postgres", address+"&connect_timeout=1")
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}

func askRedis(ctx context.Context, address string) error {
	o, err := redis.ParseURL(address)
	if err != nil {
		return err
	}
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	client := redis.NewClient(o)
	defer client.Close()
	return client.Ping(ctx).Err()
}

func askMQTT(within time.Duration, address string) error {
	client := paho.NewClient(paho.NewClientOptions().AddBroker(address).SetConnectTimeout(within).SetAutoReconnect(false).
		SetUsername(mosquitto.ServiceUser).SetPassword("secret"))
	token := client.Connect()
	if !token.WaitTimeout(within) {
		return errors.New("no answer")
	}
	client.Disconnect(0)
	return token.Error()
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Late(t, "waited %s for: %s", patience, what)
		}
	}
}

// listens reports whether a server accepts connections at the address of a URL.
func listens(t *testing.T, address string) bool {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	conn, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
