/**
 * Facts of go-plugin's gRPC protocol that a host and a plugin share. Names on the wire and in the environment are those of
 * hashicorp/go-plugin 1.x; nothing here is ours to choose.
 */

/** What a host puts into a plugin's environment, so that a plugin run by hand can tell. It keeps nobody out. */
export type Cookie = { readonly key: string; readonly value: string };

/** The kernel's own family of plugins. */
export const KERNEL_COOKIE: Cookie = {
  key: "PLUGGABLEHARNESS_AGENT_PLUGIN",
  value: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
};

/** First field of the handshake line. */
export const CORE_PROTOCOL_VERSION = 1;
/** Second field, unless the configuration says otherwise. */
export const APP_PROTOCOL_VERSION = 1;

/** Variables that a host sets for its plugin. */
export const PLUGIN_ENV = {
  /** Comma-separated application versions that the host speaks. */
  protocolVersions: "PLUGIN_PROTOCOL_VERSIONS",
  /** PEM of the host's one-use certificate; its presence asks for AutoMTLS. */
  clientCertificate: "PLUGIN_CLIENT_CERT",
  /** Folder for the plugin's socket (go-plugin 1.5 and later; older ones use TMPDIR). */
  socketFolder: "PLUGIN_UNIX_SOCKET_DIR",
  /** The JSON body of the `provider` block. */
  config: "HOOKLEDGER_PROVIDER_CONFIG",
} as const;

/** Name of the service that a plugin's health check is asked about. */
export const HEALTH_SERVICE = "plugin";

/** Full names of the methods that both sides speak beside the hook service. */
export const METHODS = {
  health: "/grpc.health.v1.Health/Check",
  healthWatch: "/grpc.health.v1.Health/Watch",
  shutdown: "/plugin.GRPCController/Shutdown",
  stdio: "/plugin.GRPCStdio/StreamStdio",
  broker: "/plugin.GRPCBroker/StartStream",
  describe: "/hookledger.v1.PluginInfo/Describe",
  dispatchHook: "/pluggableharness.hook.v1.HookSubscriberService/DispatchHook",
} as const;

/** Name in both certificates, and in the TLS handshake. */
export const TLS_NAME = "localhost";
