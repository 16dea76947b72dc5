import { ENGINE_VERSION } from "../../../version.js";

export const PACKAGE_JSON = `{
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
    "hookledger": "^${ENGINE_VERSION}"
  }
}
`;
