package devstack_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"motorpool/simulator/devstack"
)

const (
	// orphanVariable makes the test binary start a server and wait to be killed, instead of
	// testing.
	orphanVariable = "DEVSTACK_TEST_ORPHAN"
	dirVariable    = "DEVSTACK_TEST_DIR"

	// patience bounds every wait for something that must come.
	patience = time.Minute
)

func TestMain(m *testing.M) {
	if server := os.Getenv(orphanVariable); server != "" {
		if err := startAndWait(server, os.Getenv(dirVariable)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// startAndWait prints where the server listens, and does not return once it serves.
func startAndWait(server, dir string) error {
	_, url, err := startServer(server, dir)
	if err != nil {
		return err
	}
	fmt.Println(url)
	time.Sleep(time.Hour)
	return nil
}

var childServers = []string{devstack.MosquittoServer, devstack.RedisServer, devstack.PostgresServer}

// childServer is what the servers have in common that run as child processes.
type childServer interface {
	Pause() error
	Resume() error
	Kill() error
	Restart() error
	Close() error
}

// startServer starts a server by its name.
func startServer(server, dir string) (childServer, string, error) {
	switch server {
	case devstack.MosquittoServer:
		s, err := devstack.StartMosquitto(devstack.MosquittoConfig{Dir: dir, ServicePassword: "secret"})
		if err != nil {
			return nil, "", err
		}
		return s, s.ServiceURL(), nil
	case devstack.RedisServer:
		s, err := devstack.StartRedis(dir)
		if err != nil {
			return nil, "", err
		}
		return s, s.URL(), nil
	case devstack.PostgresServer:
		s, err := devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: dir})
		if err != nil {
			return nil, "", err
		}
		return s, s.URL(), nil
	}
	return nil, "", fmt.Errorf("no server is called %q", server)
}
