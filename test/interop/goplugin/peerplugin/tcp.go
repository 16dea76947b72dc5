package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/hashicorp/go-plugin"

	"hookledger.example/peer"
)

// serveTCP serves as the library does on Windows: its own server, on a port.
func serveTCP(hooks *peer.Hooks) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &plugin.GRPCServer{
		Plugins: plugin.PluginSet{peer.Name: hooks},
		Server:  plugin.DefaultGRPCServer,
		DoneCh:  make(chan struct{}),
	}
	certificate := ""
	if hosts := os.Getenv("PLUGIN_CLIENT_CERT"); hosts != "" {
		server.TLS, certificate = mutualTLS(hosts)
	}
	if err := server.Init(); err != nil {
		panic(err)
	}
	fmt.Printf("1|1|tcp|%s|grpc|%s\n", listener.Addr(), certificate)
	server.Serve(listener)
}

// mutualTLS makes this side's one-use certificate, and trusts the host's.
func mutualTLS(hosts string) (*tls.Config, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		DNSNames:     []string{"localhost"},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(hosts))
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    trusted,
		MinVersion:   tls.VersionTLS12,
	}, base64.RawStdEncoding.EncodeToString(der)
}
