"""Converts ratings to messages."""

from proctor.v1 import leaderboard_service_pb2
from services.results.ratings.rate_models import RatedModel, RatedModels, StyleEffect


def ratings_to_proto(rated: RatedModels) -> leaderboard_service_pb2.GetRatingsResponse:
    judgings, place = rated.chosen.judgings, rated.place
    return leaderboard_service_pb2.GetRatingsResponse(
        models=map(_model_to_proto, rated.models),
        unrated_models=rated.unrated,
        prompt=judgings[0].prompt if judgings else "",
        prompt_version=judgings[0].version if judgings else "",
        other_prompts=rated.chosen.other_prompts,
        judges=sorted({one.judge for one in judgings}),
        judging_run_ids=[one.run_id for one in judgings],
        left_out_runs=rated.chosen.left_out,
        matches=rated.matches,
        tie_odds=rated.tie_odds,
        first_place_bias=place.difference if place else None,
        first_place_p_value=place.p_value if place else None,
        style_effects=map(_effect_to_proto, rated.effects),
    )


def _model_to_proto(one: RatedModel) -> leaderboard_service_pb2.RatedModel:
    return leaderboard_service_pb2.RatedModel(
        rank=one.rank,
        model=one.model,
        rating=one.rating,
        ci_low=one.ci_low,
        ci_high=one.ci_high,
        wins=one.wins,
        ties=one.ties,
        losses=one.losses,
    )


def _effect_to_proto(one: StyleEffect) -> leaderboard_service_pb2.StyleEffect:
    return leaderboard_service_pb2.StyleEffect(
        name=one.name, points=one.points, ci_low=one.ci_low, ci_high=one.ci_high
    )
