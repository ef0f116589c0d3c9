package redis

import (
	"crypto/tls"
	"path/filepath"
	"testing"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/storetest"
)

// The same authority and certificate secure the Sentinels, the master that they name, and each node
// of a cluster.
func TestNew_SentinelsAndClustersAreReachedWithTLS(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.RedisServer)
	dir := t.TempDir()
	authority, err := devstack.NewAuthority(filepath.Join(dir, "authority"))
	require.NoError(t, err)
	pair, err := authority.Issue("redis")
	require.NoError(t, err)
	certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	require.NoError(t, err)
	secured := devstack.ServerTLS{KeyPair: pair, CAFile: authority.CAFile}
	servers, err := devstack.StartRedisSentinel(filepath.Join(dir, "sentinel"), &secured)
	require.NoError(t, err)
	t.Cleanup(func() { _ = servers.Close() })
	cluster, err := devstack.StartRedisCluster(filepath.Join(dir, "cluster"), 3, &secured)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cluster.Close() })
	open := func(url string, config *tls.Config) *DB {
		db, err := New(Config{URL: url, TLS: config})
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	trusted := authority.Trusted()
	known := trusted.Clone()
	known.Certificates = []tls.Certificate{certificate}
	for _, url := range []string{servers.URL(), cluster.URL()} {
		if open(url, trusted).Ready(t.Context()) == nil {
			t.Errorf("%s: ready without a certificate", url)
		}
		db := open(url, known)
		storetest.Eventually(t, url+" is ready", func() bool { return db.Ready(t.Context()) == nil })
	}
	db := open(servers.URL(), known)
	require.NoError(t, servers.Master.Kill())
	storetest.Eventually(t, "the replica takes writes", func() bool { return db.Ready(t.Context()) == nil })
}
