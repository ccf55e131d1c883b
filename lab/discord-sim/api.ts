import { createAccess } from "./access.ts";
import { createBotMessages } from "./bot-messages.ts";
import { createBotRoutes } from "./bot-routes.ts";
import { type Builders, createBuilders } from "./builders.ts";
import { createCallbackRoutes } from "./callback-routes.ts";
import { createChannelRoutes } from "./channel-routes.ts";
import { createCommandRoutes } from "./command-routes.ts";
import { type Commands, createCommands } from "./commands.ts";
import type { SessionLimits } from "./handshake.ts";
import { createInteractions } from "./interactions.ts";
import { createMessageRoutes } from "./message-routes.ts";
import { createPeople, type People } from "./people.ts";
import { createPeopleInteractions, type PeopleInteractions } from "./people-interactions.ts";
import { createReactionRoutes } from "./reaction-routes.ts";
import type { RouteTable } from "./routes.ts";
import { createSearchRoutes } from "./search-routes.ts";
import type { Simulation } from "./simulation.ts";
import { createThreadRoutes } from "./thread-routes.ts";
import { createThreads } from "./threads.ts";
import { createWebhookRoutes } from "./webhook-routes.ts";

export interface ApiDeps {
  simulation: Simulation;
  sessionLimits: SessionLimits;
  recommendedShards: number;
  isSparse: boolean;
  gatewayUrl(): string;
}

/** Both sides of the platform: the bot's calls, and what people and tests do. */
export interface Api {
  routes: RouteTable;
  builders: Builders;
  people: People & PeopleInteractions;
  commands: Commands;
}

export function createApi(deps: ApiDeps): Api {
  const { simulation } = deps;
  const { world, clock } = simulation;
  const builders = createBuilders(simulation);
  const access = createAccess(world);
  const threads = createThreads(simulation);
  const interactions = createInteractions(simulation);
  const commands = createCommands(world, clock.now);
  const messages = createBotMessages(simulation);
  return {
    routes: [
      ...createBotRoutes(deps),
      ...createChannelRoutes(simulation, access, builders),
      ...createMessageRoutes(simulation, access, messages),
      ...createReactionRoutes(simulation, access),
      ...createSearchRoutes(simulation),
      ...createThreadRoutes(simulation, access, threads, messages),
      ...createCallbackRoutes(simulation, interactions, messages),
      ...createWebhookRoutes(simulation, interactions, messages),
      ...createCommandRoutes(world, commands),
    ],
    builders,
    people: {
      ...createPeople(simulation, threads),
      ...createPeopleInteractions({ simulation, interactions, commands }),
    },
    commands,
  };
}
