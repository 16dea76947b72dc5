// @ts-check
/** Several doubles on one log, which gossip about who leads. A double of a cluster, that is: nothing is replicated. */
/** @import { DoubleOptions } from "./double.mjs" */
/** @import { Member } from "./types.js" */
import { Double } from "./double.mjs";
import { EventLog } from "./log.mjs";

export class Cluster {
  log;
  members;
  #leader = 0;

  /**
   * @param {number} size
   * @param {Omit<DoubleOptions, "members" | "port">} options
   */
  constructor(size, options) {
    this.log = options.log ?? new EventLog();
    const members = () => this.#gossip();
    this.members = Array.from({ length: size }, () => new Double({ ...options, log: this.log, members }));
  }

  /** All members, for a client that gossips. */
  get url() {
    const hosts = this.members.map(({ endpoint }) => `${endpoint.address}:${endpoint.port}`);
    return `esdb://${hosts.join(",")}${this.leader.url.slice(this.leader.url.indexOf("?"))}`;
  }

  get leader() {
    return this.member(this.#leader);
  }

  /** @param {number} index */
  member(index) {
    const member = this.members[index];
    if (member === undefined) throw new Error(`there is no member ${index}`);
    return member;
  }

  /** The others follow from now on; connections stay. @param {number} index */
  moveLeader(index) {
    this.member(index);
    this.#leader = index;
  }

  async start() {
    await Promise.all(this.members.map((member) => member.start()));
  }

  async stop() {
    await Promise.all(this.members.map((member) => member.stop()));
  }

  /** @returns {readonly Member[]} */
  #gossip() {
    return this.members.map(({ endpoint, running }, index) => ({
      endpoint,
      leads: running && index === this.#leader,
      alive: running,
    }));
  }
}

/**
 * @param {number} size
 * @param {Omit<DoubleOptions, "members" | "port">} [options]
 */
export async function startCluster(size, options = {}) {
  const cluster = new Cluster(size, options);
  await cluster.start();
  return cluster;
}
