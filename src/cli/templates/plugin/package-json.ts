/** `hookledger`: where npm finds it, as a version range or a folder. */
export function packageJson(hookledger: string): string {
  return `{
  "name": "guard-plugin",
  "version": "0.1.0",
  "private": true,
  "type": "module",
  "engines": {
    "node": ">=20.19"
  },
  "scripts": {
    "test": "node --test"
  },
  "dependencies": {
    "hookledger": ${JSON.stringify(hookledger)}
  }
}
`;
}
