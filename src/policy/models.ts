import type { ModelOffer } from "../config/policy/models.ts";
import type { Policy } from "../config/policy/policy-file.ts";
import type { Actor } from "../port/catalogue.ts";
import { quoteName } from "../text/quote-name.ts";
import { isAdminOf } from "./access.ts";
import { isFor, isLike } from "./rules.ts";

export interface ChosenModel {
  model: string;
  /** A line of Markdown that tells the asker why another model than usual answers. */
  notice?: string;
}

/** The limit with the smallest remaining share. */
export interface LimitLeft {
  /** From 0 to 1. */
  left: number;
  /** The subject of a sentence, such as "Your limit of 10,000 tokens per day". */
  limit: string;
}

/** Decides which chat models a person can use in a channel. */
export interface Models {
  isOffered(model: string, by: Actor): boolean;
  /** The model that answers in channels that have chosen none. */
  usual(by: Actor): string;
  /** Resolves to the model that answers. `own` is the channel's choice. */
  choose(own: string | undefined, by: Actor): Promise<ChosenModel>;
}

export interface ModelsOptions {
  policy(): Policy;
  model: string;
  /** Resolves to undefined if no limit applies, or if the usage is unknown. */
  readScarcestLimit(by: Actor): Promise<LimitLeft | undefined>;
}

export function createModels({ policy, model: configured, readScarcestLimit }: ModelsOptions): Models {
  /** Undefined if the person can choose every model. */
  function findOffer(by: Actor): ModelOffer | undefined {
    const { access = {}, models: { offered = [] } = {} } = policy();
    const isAdmin = isAdminOf(access, by);
    return offered.find((offer) => isFor(offer, by, isAdmin));
  }

  function toUsual(offer: ModelOffer | undefined): string {
    if (offer === undefined) return configured;
    return offer.default ?? (isIn(offer, configured) ? configured : (offer.models[0] ?? configured));
  }

  async function chooseCheaper(
    by: Actor,
    usual: string,
    offer: ModelOffer | undefined,
  ): Promise<ChosenModel | undefined> {
    const cheaper = policy().models?.cheaper;
    if (cheaper === undefined || cheaper.model === usual || !isIn(offer, cheaper.model)) return undefined;
    const scarcest = await readScarcestLimit(by);
    if (scarcest === undefined || scarcest.left * 100 >= cheaper.below) return undefined;
    const notice = `_Answered by ${quoteName(cheaper.model)}, which costs less: ${toSentencePart(scarcest.limit)} is nearly used up._`;
    return { model: cheaper.model, notice };
  }

  return {
    isOffered: (model, by) => isIn(findOffer(by), model),
    usual: (by) => toUsual(findOffer(by)),
    async choose(own, by) {
      const offer = findOffer(by);
      const usual = toUsual(offer);
      if (own === undefined) return (await chooseCheaper(by, usual, offer)) ?? { model: usual };
      if (isIn(offer, own)) return { model: own };
      return {
        model: usual,
        notice: `_Answered by ${quoteName(usual)}: ${quoteName(own)}, this channel's model, isn't available to you here._`,
      };
    },
  };
}

function isIn(offer: ModelOffer | undefined, model: string): boolean {
  return offer === undefined || offer.default === model || offer.models.some((pattern) => isLike(model, pattern));
}

function toSentencePart(words: string): string {
  return words.charAt(0).toLowerCase() + words.slice(1);
}
