// The part of a kubelet that answers port-forward, made of Kubernetes' own code for it. Ports of every pod are
// those of this machine. tools/kube.sh builds it inside of Kubernetes' source.
//
// Usage: kubelet CERT KEY CLIENT_CA; prints its port, and ends with its stdin.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/ioutil"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"k8s.io/kubernetes/pkg/kubelet/cri/streaming/portforward"
)

type forwarder struct{}

func (forwarder) PortForward(name string, uid types.UID, port int32, stream io.ReadWriteCloser) error {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer conn.Close()
	done := make(chan error, 2)
	go func() {
		_, err := io.Copy(conn, stream)
		done <- err
	}()
	go func() {
		_, err := io.Copy(stream, conn)
		done <- err
	}()
	return <-done
}

func forward(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // portForward/NAMESPACE/POD
	options, err := portforward.NewV4Options(r)
	if err != nil || len(parts) < 3 {
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{}, parts[1]+"_"+parts[2], "", options, time.Hour, 30*time.Second,
		portforward.SupportedProtocols)
}

func main() {
	pem, err := ioutil.ReadFile(os.Args[3])
	cas := x509.NewCertPool()
	if err != nil || !cas.AppendCertsFromPEM(pem) {
		panic("no CA")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/", forward)
	server := &http.Server{Handler: mux, TLSConfig: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: cas}}
	go func() { panic(server.ServeTLS(listener, os.Args[1], os.Args[2])) }()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	io.Copy(ioutil.Discard, os.Stdin)
}
